// The page of the sample: every kind of finding, worst first, and the way to its picture.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { build } from "esbuild";
import { browser, errors, open, requests, withData } from "./open.mjs";

after(() => browser.close());

const made = await build({ entryPoints: [new URL("sample.ts", import.meta.url).pathname], bundle: true, write: false, format: "esm" });
const { page: sample } = await import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].text).toString("base64")}`);
const path = withData(sample, "findings");

test("findings are there, worst first", async () => {
  const page = await open({ path });
  const shares = await page.$$eval(".finding .share", (all) => all.map((s) => parseFloat(s.innerText)));
  assert.equal(shares.length, sample.subject.findings.length);
  assert.deepEqual(shares, [...shares].sort((a, b) => b - a));
  const kinds = await page.$$eval(".finding .kind", (all) => all.map((k) => k.firstChild.textContent));
  assert.equal(new Set(kinds).size, kinds.length);
  for (const kind of kinds) assert.doesNotMatch(kind, /-/);
});

test("each leads to its picture", async () => {
  const page = await open({ path });
  for (const [at, finding] of sample.subject.findings.slice(0, 5).entries()) {
    await page.locator(".finding .link").nth(at).click();
    const focused = await page.evaluate(() => document.activeElement.id);
    assert.equal(focused, finding.picture.panel);
  }
});

test("a fix is copied", async () => {
  const page = await open({ path });
  await page.locator(".fix button").first().click();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(text, sample.subject.findings[0].fixes[0].copy);
});

test("a page with nothing wrong says so", async () => {
  const quiet = { ...sample, subject: { ...sample.subject, findings: [] } };
  const page = await open({ path: withData(quiet, "quiet") });
  assert.match(await page.locator("#findings").innerText(), /Nothing wrong was found/);
});

test("data of another version is refused", async () => {
  const page = await open({ path: withData({ ...sample, format: 99 }, "other"), ready: false });
  assert.match(await page.locator("#page").innerText(), /another version/);
});

test("no error was said and no request left", () => {
  assert.deepEqual(errors, []);
  assert.deepEqual(requests, []);
});
