// The page of the sample: every kind of finding, worst first, and the way to its picture.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { browser, errors, open, requests, sample, settled, withData } from "./open.mjs";

after(() => browser.close());

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

test("what is settled has no bar and does not alarm", async () => {
  const findings = sample.subject.findings.slice(0, 2).map((f, at) => ({ ...f, severity: at ? 0 : 0.4 }));
  const page = await open({ path: withData({ ...sample, subject: { ...sample.subject, findings } }, "settled") });
  assert.equal(await page.locator(".finding .severity").count(), 1);
  assert.match(await page.locator(".finding.settled").innerText(), /Nothing to mend/);
});

test("all findings are copied as CSV", async () => {
  const page = await open({ path });
  await page.locator("#findings details summary").click();
  await page.locator("#findings .csv").click();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(text, /^Finding,Structure,Share,Share of,What,Evidence,Fix\n/);
  assert.ok(text.includes(sample.subject.findings[0].evidence[0].slice(0, 12)));
});

test("ranks have their number, and only threads that can use a structure have a row", async () => {
  const { subject } = sample;
  const processes = [0, 1].map((rank) => ({ ...subject.processes[0], rank }));
  const threads = [...subject.threads, ...subject.threads.map((t) => ({ ...t, process: 1, reads: 5 }))];
  const orders = subject.communication.orders.map((order) => ({ ...order, threads: threads.map((_, at) => at) }));
  const communication = { ...subject.communication, orders };
  const page = await open({ path: withData({ ...sample, subject: { ...subject, processes, threads, communication } }, "ranks") });
  await settled(page);
  const labels = await page.locator(".structure-detail .row-label").allTextContents();
  assert.ok(labels.some((text) => text.startsWith("rank 0")), labels.join());
  assert.ok(!labels.some((text) => text.startsWith("rank 1")), labels.join());
});

test("data of another version is refused", async () => {
  const page = await open({ path: withData({ ...sample, format: 99 }, "other"), ready: false });
  assert.match(await page.locator("#page").innerText(), /another version/);
});

test("no error was said and no request left", () => {
  assert.deepEqual(errors, []);
  assert.deepEqual(requests, []);
});
