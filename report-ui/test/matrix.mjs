// The matrix: order, scale, and the moment of the run that it shows.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { browser, errors, expected, open, pixels, requests, settled } from "./open.mjs";

after(() => browser.close());

const CANVAS = "#communication .matrix canvas";
const page = await open();
const title = () => page.locator(".selected b").innerText();
const events = async () => (await page.locator(".selected [role=status]").innerText()).split(", ")[1];
const choose = async (text) => {
  await page.locator("#communication .choice label", { hasText: text }).click();
  await settled(page);
};

test("another order or scale is another picture", async () => {
  const first = await pixels(page, CANVAS);
  await choose("Cluster");
  const clustered = await pixels(page, CANVAS);
  assert.notEqual(clustered, first);
  await choose("Thread");
  assert.equal(await pixels(page, CANVAS), first);
  await choose("Logarithmic");
  assert.notEqual(await pixels(page, CANVAS), first);
  await choose("Linear");
});

test("a click on the timeline shows that slice", async () => {
  assert.equal(await title(), "Whole run");
  const whole = await pixels(page, CANVAS);
  const over = page.locator("#timeline .u-over").first();
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  await page.mouse.move(box.x + box.width * 0.25, box.y + 40);
  await page.mouse.click(box.x + box.width * 0.25, box.y + 40);
  await page.waitForFunction(() => document.querySelector(".selected b").innerText.startsWith("Slice "));
  const slice = Number(/Slice (\d+)/.exec(await title())[1]);
  assert.ok(Math.abs(slice - expected.slices / 4) <= 2, `slice ${slice}`);
  await settled(page);
  assert.notEqual(await pixels(page, CANVAS), whole);
  await page.click('button[aria-label="Next slice"]');
  assert.match(await title(), new RegExp(`^Slice ${slice + 1},`));
  await page.click('button[aria-label="Previous slice"]');
  assert.match(await title(), new RegExp(`^Slice ${slice},`));
  await page.click('button[aria-label="Show the whole run"]');
  assert.equal(await title(), "Whole run");
  await settled(page);
  assert.equal(await pixels(page, CANVAS), whole);
});

test("a phase shows its matrix", async () => {
  const phases = page.locator("#timeline tbody button");
  assert.equal(await phases.count(), 2);
  await phases.nth(0).click();
  assert.match(await title(), /^Phase 1/);
  await settled(page);
  const [first, some] = [await pixels(page, CANVAS), await events()];
  await phases.nth(1).click();
  assert.match(await title(), /^Phase 2/);
  await settled(page);
  assert.notEqual(await pixels(page, CANVAS), first);
  assert.notEqual(some, undefined);
  await page.click('button[aria-label="Show the whole run"]');
});

test("a cell is read out, the same both ways", async () => {
  const plot = page.locator("#communication [role=application]");
  await plot.focus();
  for (let i = 0; i < 30; i++) await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Home");
  const text = () => page.locator("#communication .readout").innerText();
  assert.match(await text(), /0 .*with itself|^0 /);
  await page.keyboard.press("ArrowRight");
  const right = /: ([\d,]+) events/.exec(await text())[1];
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowDown");
  const down = /: ([\d,]+) events/.exec(await text())[1];
  assert.equal(right, down);
  assert.notEqual(right, "0");
});

test("the pairs are in the table", async () => {
  const summary = page.locator("#communication details.alternative summary").first();
  await summary.click();
  const rows = page.locator("#communication details.alternative").first().locator("tbody tr");
  await rows.nth(11).waitFor();
});

test("no error was said and no request left", () => {
  assert.deepEqual(errors, []);
  assert.deepEqual(requests, []);
});
