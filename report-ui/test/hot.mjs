// Cells that are planted hot are seen at every zoom, and read out to the last digit.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { unseen, view } from "./hottest.mjs";
import { browser, errors, expected, open, settled } from "./open.mjs";

after(() => browser.close());

const page = await open();
const heat = page.locator(".structure-detail .heat");
const plot = heat.locator("[role=application]");

test("all at once", async () => {
  assert.deepEqual(await unseen(page, expected.cells, expected.threads), []);
});

test("cells that are not hot do not look so", async () => {
  const cold = expected.cells.map(([column, thread]) => [column, (thread + expected.threads / 2) % expected.threads]);
  assert.equal((await unseen(page, cold, expected.threads)).length, cold.length);
});

test("each, zoomed in step by step to its page", async () => {
  for (const [column, thread] of expected.cells.slice(0, 4)) {
    await plot.focus();
    await page.keyboard.press("0");
    await settled(page);
    await plot.scrollIntoViewIfNeeded();
    for (let step = 0; step < 16; step++) {
      assert.deepEqual(await unseen(page, expected.cells, expected.threads), []);
      const { view: [x0, x1], frame: [left, width, top, height] } = await view(page);
      const box = await plot.boundingBox();
      const x = box.x + left + ((column + 0.5 - x0) / (x1 - x0)) * width;
      await page.mouse.move(x, box.y + top + ((thread + 0.5) / expected.threads) * height);
      await page.keyboard.press("+");
      await settled(page);
    }
    const { view: [x0, x1] } = await view(page);
    assert.ok(x1 - x0 < 60, `${x1 - x0} pages at the closest`);
    const text = await heat.locator(".readout").innerText();
    assert.ok(text.startsWith(`page ${column.toLocaleString("en")} of`), `${text} at page ${column}`);
    assert.ok(text.includes(`${expected.count.toLocaleString("en")} accesses`), text);
  }
});

test("no error was said", () => assert.deepEqual(errors, []));
