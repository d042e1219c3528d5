// Reads the page's data and puts the panels together.
import { fill, h } from "./dom";
import type { Page, Picture } from "./model";
import { communication } from "./panels/communication";
import { comparison } from "./panels/comparison";
import { findings } from "./panels/findings";
import { machine } from "./panels/machine";
import { pages } from "./panels/pages";
import { prediction } from "./panels/prediction";
import { structures } from "./panels/structures";
import { unseen } from "./panels/unseen";
import { head, verdict } from "./panels/verdict";
import { choose, dark, watch } from "./theme";

const FORMAT = 1;

function start(): void {
  const place = document.getElementById("page")!;
  const page: Page = JSON.parse(document.getElementById("data")!.textContent!);
  if (page.format !== FORMAT) {
    fill(place, h("p", { class: "missing" }, "This file's data is of another version than its program; make it again with hither report."));
    return;
  }
  const { subject } = page;
  const data = structures(subject);
  const sharing = communication(subject);
  const show = (picture: Picture) => {
    if (picture.panel === "structure") data.show(picture.object);
    go(picture.panel);
  };
  const sections = [
    verdict(subject), ...(page.comparison ? [comparison(page.comparison, subject, show, go)] : []), findings(subject, show),
    ...(subject.predictions.length ? [prediction(subject.predictions)] : []), machine(subject), sharing.element,
    data.element, pages(subject), unseen(page),
  ];
  watch();
  fill(place,
    h("a", { class: "skip", href: "#verdict" }, "Skip to the verdict"),
    navigation(sections),
    h("main", {}, head(subject), sections));
  follow(sections);
  document.documentElement.dataset.ready = "yes";
}

function go(id: string): void {
  const target = document.getElementById(id);
  if (!target) return;
  target.tabIndex = -1;
  target.scrollIntoView({ block: "start" });
  target.focus({ preventScroll: true });
}

function navigation(sections: HTMLElement[]): HTMLElement {
  const theme = h("button", { type: "button", class: "small theme", click: () => {
    choose(dark() ? "light" : "dark");
    name();
  } });
  const name = () => (theme.textContent = dark() ? "Light" : "Dark");
  name();
  const links = sections.map((s) => h("li", {}, h("a", { href: `#${s.id}` }, s.querySelector("h2")!.textContent)));
  return h("nav", { "aria-label": "Sections" }, h("p", { class: "brand" }, "hither"), h("ol", {}, links), theme);
}

/// Marks in the navigation what is being read.
function follow(sections: HTMLElement[]): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>("nav a")];
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const link = links.find((l) => l.hash === `#${entry.target.id}`);
      if (entry.isIntersecting && link) {
        links.forEach((l) => l.removeAttribute("aria-current"));
        link.setAttribute("aria-current", "true");
        const list = link.closest("ol")!;
        list.scrollLeft = link.offsetLeft - list.offsetLeft - 24;
      }
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  sections.forEach((s) => seen.observe(s));
}

start();
