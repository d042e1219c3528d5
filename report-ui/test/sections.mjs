// Every section renders, in light and dark, on a screen, a phone and paper, and can be used
// without a mouse.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { browser, errors, expected, open, pixels, requests, settled } from "./open.mjs";

after(() => browser.close());

const SECTIONS = ["verdict", "findings", "machine", "communication", "structures", "pages", "unseen"];

test("every section is there and says something", async () => {
  const page = await open();
  const found = await page.$$eval("main > section", (all) => all.map((s) => [s.id, s.innerText.trim().length]));
  assert.deepEqual(found.map(([id]) => id), SECTIONS);
  for (const [id, length] of found) assert.ok(length > 20, `${id} is empty`);
  const links = await page.$$eval("nav a", (all) => all.map((a) => a.hash.slice(1)));
  assert.deepEqual(links, SECTIONS);
  const bad = await page.$$eval("main", ([main]) => main.innerText.match(/.{0,30}(undefined|NaN|\[object|Infinity).{0,30}/g));
  assert.equal(bad, null);
});

test("the verdict shows the figures that decide it", async () => {
  const page = await open();
  const rows = await page.$$eval("#verdict tbody tr", (all) => all.map((row) => row.innerText.replace(/\s+/g, " ")));
  if (expected.empty) return;
  for (const [name, asked] of [["residual", "at least"], ["remote accesses", "at least"], ["Acc", "less than"]]) {
    assert.ok(rows.some((row) => row.includes(name) && row.includes(asked)), `${name}: ${rows.join("; ")}`);
  }
});

test("pictures are introduced and have a text alternative", async () => {
  const page = await open();
  await page.$$eval("details", (all) => all.forEach((details) => (details.open = true)));
  await settled(page);
  const heats = await page.$$eval(".heat", (all) => all.map((heat) => {
    const figure = heat.closest(".figure");
    const sentences = figure.querySelector(".intro")?.innerText.match(/[.](\s|$)/g)?.length;
    return {
      sentences,
      alternative: !!figure.querySelector("details.alternative table"),
      label: heat.querySelector("[role=application]").getAttribute("aria-label"),
    };
  }));
  if (!expected.empty) assert.ok(heats.length >= 2);
  for (const heat of heats) {
    assert.equal(heat.sentences, 2);
    assert.ok(heat.alternative && heat.label.length > 20, JSON.stringify(heat));
  }
  const charts = await page.$$eval(".chart .plot", (all) => all.map((c) => ({
    label: c.getAttribute("aria-label").length,
    table: !!c.closest(".figure").querySelector("details.alternative table"),
  })));
  for (const chart of charts) assert.ok(chart.label > 10 && chart.table, JSON.stringify(chart));
});

test("names are unique and everything to press has one", async () => {
  const page = await open();
  const ids = await page.$$eval("[id]", (all) => all.map((e) => e.id));
  assert.equal(new Set(ids).size, ids.length);
  const nameless = await page.$$eval("button, a, input, summary", (all) =>
    all.filter((e) => !e.hidden && !(e.innerText || e.ariaLabel || e.labels?.[0]?.innerText || e.textContent.trim())).map((e) => e.outerHTML));
  assert.deepEqual(nameless, []);
});

test("dark mode changes page and pictures, by system and by switch", async () => {
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await open();
  const dark = await open({ theme: "dark" });
  assert.notEqual(await background(light), await background(dark));
  const before = await background(light);
  const picture = expected.empty ? null : await pixels(light, "#communication canvas");
  await light.click("nav .theme");
  await settled(light);
  assert.equal(await background(light), await background(dark));
  if (picture !== null) assert.notEqual(await pixels(light, "#communication canvas"), picture);
  await light.click("nav .theme");
  assert.equal(await background(light), before);
});

test("nothing is cut off on a phone or a narrow screen", async () => {
  for (const width of [1280, 800, 390, 320]) {
    const page = await open({ width, touch: width < 500 });
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${wide} pixels on a screen of ${width}`);
    await page.context().close();
  }
});

test("it prints", async () => {
  const page = await open({ theme: "dark" });
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await settled(page);
  const ink = await page.evaluate(() => [getComputedStyle(document.body).color, getComputedStyle(document.querySelector("nav")).display]);
  assert.deepEqual(ink, ["rgb(22, 32, 43)", "none"]);
  const shapes = await page.$$eval(".heat-plot", (all) => all.map((plot) => {
    const [canvas, over] = [plot.querySelector("canvas"), plot.querySelector("svg")].map((e) => e.getBoundingClientRect());
    return [canvas.width / canvas.height, over.width / over.height, canvas.width];
  }));
  for (const [below, above, width] of shapes) assert.ok(Math.abs(below / above - 1) < 0.02 && width > 100, `${below} ${above}`);
  const pdf = await page.pdf({ format: "A4" });
  assert.ok(pdf.length > 10_000);
});

test("pictures can be reached and read by keyboard", { skip: expected.empty }, async () => {
  const page = await open();
  const reached = new Set();
  for (let i = 0; i < 120; i++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.closest("section")?.id + ":" + (document.activeElement.getAttribute("role") ?? document.activeElement.tagName)));
  }
  assert.ok(reached.has("communication:application"), [...reached].join(" "));
  assert.ok(reached.has("structures:application"), [...reached].join(" "));
  const heat = page.locator(".structure-detail .heat").first();
  const plot = heat.locator("[role=application]");
  const text = () => heat.locator(".readout").innerText();
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  const first = await text();
  assert.match(first, /page \d/);
  await page.keyboard.press("ArrowRight");
  const second = await text();
  assert.notEqual(second, first);
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await text(), second);
  await page.keyboard.press("End");
  assert.match(await text(), /page 19,9\d\d of 20,000/);
  const whole = await pixels(page, ".structure-detail canvas");
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  await settled(page);
  assert.notEqual(await pixels(page, ".structure-detail canvas"), whole);
  await page.keyboard.press("0");
  await settled(page);
  assert.equal(await pixels(page, ".structure-detail canvas"), whole);
});

test("tables are copied as CSV", { skip: expected.empty }, async () => {
  const page = await open();
  await page.locator("#structures .csv").first().click();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  const [head, ...rows] = text.trim().split("\n");
  assert.equal(head, "Name,Kind,Type,Where,Size,Reads,Writes,Share,Fetches,Fetched,Exclusive,First touch right");
  await page.locator("#communication .metrics + .table-tools .csv").click();
  const figures = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(figures, /^Metric,Whole run,Equation\nHeterogeneity C_H,\d/);
  const tables = await page.locator("main .table table").count();
  assert.ok((await page.locator("main .table .csv").count()) >= tables, "a table without a copy");
  assert.match(rows[0], /^field,heap,[^,]*,\/src\/planted.c:17,81920000,/);
});

test("no error was said and no request left", () => {
  assert.deepEqual(errors, []);
  assert.deepEqual(requests, []);
});
