// What could not be seen.
import { h } from "../dom";
import type { Page } from "../model";
import { section } from "./section";

export function unseen(page: Page): HTMLElement {
  const { unseen, run } = page.subject;
  const body = unseen.length
    ? h("ul", { class: "unseen" }, unseen.map((u) => h("li", {}, u.what, u.effect ? [" ", h("span", { class: "soft" }, u.effect)] : null)))
    : h("p", {}, "Nothing is known to be missing: every access was counted, and no event was dropped.");
  return section("unseen", "What could not be seen", h("div", { class: "figure" }, body,
    h("p", { class: "soft made" }, `Times are those of the run under the tracer, which is slower than the program alone. Made by hither ${page.writer} from a run in `, h("code", {}, run.directory || "?"), ` on Linux ${run.kernel}.`)));
}
