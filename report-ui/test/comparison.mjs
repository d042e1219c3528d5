// The page of the sample as a comparison: what changed first, told by sign and word, and the
// way to what it is about.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { browser, errors, open, requests, sample, withData } from "./open.mjs";

after(() => browser.close());

const path = withData(sample, "comparison");
const ORDER = ["new", "worse", "gone", "better", "changed", "same"];
const TABLES = ["Findings", "Metrics", "Data structures"];

const rows = (page, name) => page.locator(`#comparison [aria-label="${name}, before and after"] tbody tr`);

test("it follows the verdict and shows both sides", async () => {
  const page = await open({ path });
  const ids = await page.$$eval("main > section", (all) => all.map((s) => s.id));
  assert.deepEqual(ids.slice(0, 2), ["verdict", "comparison"]);
  const sides = await page.locator("#comparison .side").allInnerTexts();
  assert.equal(sides.length, 2);
  assert.match(sides[0], new RegExp(sample.comparison.file));
  assert.match(sides[1], new RegExp(sample.subject.run.command));
});

test("what changed comes first, in words", async () => {
  const page = await open({ path });
  for (const name of TABLES) {
    const all = page.locator(`#comparison .table:has([aria-label^="${name}"]) .table-tools button`).first();
    if (await all.isVisible()) await all.click();
    const words = await rows(page, name).locator(".change").allInnerTexts();
    const places = words.map((text) => ORDER.findIndex((word) => text.includes(word)));
    assert.equal(places.length, 6, `${name}: ${words}`);
    assert.deepEqual(places, [...places].sort((a, b) => a - b), `${name}: ${words}`);
  }
});

test("worse and better differ without colour", async () => {
  const page = await open({ path });
  const signs = await page.$$eval("#comparison .summary .change", (all) => Object.fromEntries(all.map((c) => [c.classList[1], c.querySelector(".sign").textContent])));
  assert.notEqual(signs.worse, signs.better);
  assert.notEqual(signs.new, signs.gone);
});

test("a finding leads to its card, a structure to its pages", async () => {
  const page = await open({ path });
  await rows(page, "Findings").locator(".choose").first().click();
  assert.match(await page.evaluate(() => document.activeElement.id), /^finding-\d+$/);
  await rows(page, "Data structures").locator(".choose").first().click();
  assert.equal(await page.evaluate(() => document.activeElement.id), "structure");
});

test("before and after are apart in CSV", async () => {
  const page = await open({ path });
  await page.locator("#comparison .csv").first().click();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(text.split("\n")[0], /Of accesses before,Of accesses after/);
});

test("it fits a phone and the dark", async () => {
  for (const look of [{ width: 390, touch: true }, { theme: "dark" }]) {
    const page = await open({ ...look, path });
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${wide} on ${room}`);
  }
});

test("no error was said and no request left", () => {
  assert.deepEqual(errors, []);
  assert.deepEqual(requests, []);
});
