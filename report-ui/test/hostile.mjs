// Names of the traced program are text, however they look and however long they are.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { browser, errors, expected, open, requests, settled } from "./open.mjs";

after(() => browser.close());

test("no name is run", async () => {
  const page = await open();
  const rows = page.locator("#structures .choose");
  assert.equal(await rows.count(), expected.rows);
  for (let i = 0; i < expected.rows; i++) {
    await rows.nth(i).click();
    await settled(page);
  }
  assert.equal(await page.evaluate(() => window.taken), undefined);
  assert.equal(await page.locator("script").count(), 2);
  assert.equal(await page.locator("main img").count(), 0);
});

test("no name moves others", async () => {
  for (const width of [1280, 390]) {
    const page = await open({ width });
    const names = page.locator("#structures .choose");
    for (let i = 0; i < expected.rows; i++) {
      const box = await names.nth(i).boundingBox();
      assert.ok(box.height < 60 && box.width < width, `name ${i} takes ${box.width} x ${box.height}`);
    }
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${wide} on ${room}`);
    const head = await page.locator("h1").boundingBox();
    assert.ok(head.height < 120, `the title takes ${head.height}`);
    const text = await page.evaluate(() => document.body.innerText);
    assert.ok(!text.includes("\u202e"));
  }
});

test("no name is a formula in a spreadsheet", async () => {
  const page = await open();
  await page.locator("#structures .csv").first().click();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(text.includes("\"'=HYPERLINK(\"\"http://x\"\")\""), text.slice(0, 2000));
});

test("no error was said and no request left", () => {
  assert.deepEqual(errors, []);
  assert.deepEqual(requests, []);
});
