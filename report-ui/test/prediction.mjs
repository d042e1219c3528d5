// The page of the sample with predictions: a bar for each placement, as long as its time, with
// its interval and its name, and a table that says the same.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { browser, errors, open, requests, sample, withData } from "./open.mjs";

after(() => browser.close());

const [one] = sample.subject.predictions;
const named = (name, value, half_width) => {
  const placement = structuredClone(one.placements[1]);
  return { ...placement, name, relative: { ...placement.relative, time: { value, half_width } } };
};
/// One that takes no longer than another may, one that takes far longer, one of one window.
const placements = [...one.placements, named("scatter", 1.5, 0.25), named("compact", 0.9, null), named("lucky", 0.1, 0.3)];
const forecast = { ...one, placements };
const predictions = [forecast, { ...forecast, title: "another machine" }];
const path = withData({ ...sample, subject: { ...sample.subject, predictions } }, "prediction");

const times = placements.map((p) => p.relative.time);
const most = Math.max(...times.map((t) => t.value + (t.half_width ?? 0)));

/// Ends of what is drawn of each bar, as shares of its track.
const drawn = (page) => page.$$eval("#prediction .bars", ([bars]) => [...bars.querySelectorAll(".placed")].map((bar) => {
  const track = bar.querySelector(".track").getBoundingClientRect();
  const ends = (name) => {
    const box = bar.querySelector(name).getBoundingClientRect();
    return [(box.left - track.left) / track.width, (box.right - track.left) / track.width];
  };
  const fill = bar.querySelector(".fill");
  const row = bar.getBoundingClientRect();
  const inside = [".name", ".value", ".track"].every((name) => {
    const box = bar.querySelector(name).getBoundingClientRect();
    return box.width > 0 && box.top >= row.top - 1 && box.bottom <= row.bottom + 1 && box.right <= row.right + 1;
  });
  return { inside, left: track.left, width: track.width, fill: ends(".fill"), range: ends(".range"), height: fill.offsetHeight, colour: getComputedStyle(fill).backgroundColor };
}));

const near = (a, b, what) => assert.ok(Math.abs(a - b) < 0.01, `${what}: ${a} and not ${b}`);

test("bars are as long as the times, and lines as their intervals", async () => {
  for (const look of [{}, { theme: "dark" }, { width: 390, touch: true }]) {
    const page = await open({ ...look, path });
    const bars = await drawn(page);
    assert.equal(bars.length, placements.length);
    for (const [at, bar] of bars.entries()) {
      const { value, half_width } = times[at];
      const { name } = placements[at];
      assert.ok(bar.inside, `${name} is cut off`);
      // Bars of one scale.
      assert.deepEqual([bar.left, bar.width], [bars[0].left, bars[0].width]);
      assert.ok(bar.width > 60 && bar.height > 4, `${name} is too small to see`);
      assert.doesNotMatch(bar.colour, /rgba\(.*, 0\)|transparent/);
      near(bar.fill[0], 0, name);
      near(bar.fill[1], value / most, name);
      near(bar.range[0], Math.max(0, value - (half_width ?? 0)) / most, `from of ${name}`);
      near(bar.range[1], (value + (half_width ?? 0)) / most, `to of ${name}`);
    }
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${wide} on ${room}`);
  }
});

test("each bar has its name and its time, and the fastest says so in a word", async () => {
  const page = await open({ path });
  const bars = page.locator("#prediction .bars").first();
  assert.ok((await bars.getAttribute("aria-label")).length > 10);
  const texts = await bars.locator(".placed").allInnerTexts();
  const values = await bars.locator(".value").allInnerTexts();
  for (const [at, text] of texts.entries()) {
    assert.ok(text.includes(placements[at].name), text);
    assert.equal(parseFloat(values[at]), Math.round(times[at].value * 1000) / 10);
    assert.equal(text.includes("fastest"), at === forecast.best, text);
    assert.equal(text.includes("\u00b1"), times[at].half_width !== null, text);
  }
});

test("every machine has its figure with two sentences, its verdict and a table", async () => {
  const page = await open({ path });
  await page.$$eval("#prediction details", (all) => all.forEach((details) => (details.open = true)));
  const figures = page.locator("#prediction .figure:has(.bars):not(:has(.figure))");
  assert.equal(await figures.count(), predictions.length);
  for (let at = 0; at < predictions.length; at++) {
    const figure = figures.nth(at);
    const sentences = (await figure.locator(".intro").innerText()).match(/[.](\s|$)/g);
    assert.equal(sentences.length, 2);
    assert.ok((await figure.innerText()).includes(forecast.verdict));
    const rows = await figure.locator("details.alternative tbody tr").allInnerTexts();
    assert.equal(rows.length, placements.length);
    for (const [row, text] of rows.entries()) assert.ok(text.includes(placements[row].name), text);
  }
  const titles = await page.locator("#prediction").innerText();
  for (const { title } of predictions) assert.ok(titles.includes(title));
  const bad = (await page.locator("#prediction").innerText()).match(/undefined|NaN|\[object|Infinity/);
  assert.equal(bad, null);
});

test("no error was said and no request left", () => {
  assert.deepEqual(errors, []);
  assert.deepEqual(requests, []);
});
