import { execFileSync } from "node:child_process";
import { AxeBuilder } from "@axe-core/playwright";
import { expect } from "@playwright/test";

export const layby = (...args) =>
  execFileSync(`${process.env.CARGO_TARGET_DIR ?? "../target"}/debug/layby`, args, { encoding: "utf8" }).trim();

/** An agent of a program's own under this name (this run's), its `ask` and `read` over the API. */
export function outsideAgent(name) {
  const own = `${name} ${process.pid}`;
  let asked = 0;
  layby("agent", "add", own, "--outside", "--sponsor", "noor@layby.example");
  const token = layby("token", "create", "--agent", own, "--scope", "ask", "--scope", "read");
  const headers = { authorization: `Bearer ${token}` };
  return {
    headers,
    async ask(request, body) {
      const data = { kind: "question", name: `q${++asked}`, ask: ["mia@layby.example"], ...body };
      const response = await request.post("/api/v1/slots", { headers, data });
      expect(response.status(), await response.text()).toBe(201);
      return response.json();
    },
    read: async (request, slot) => (await request.get(`/api/v1/slots/${slot.id}`, { headers })).json(),
  };
}

/** The page as it stands, with every closed part opened: axe finds nothing, and nothing scrolls sideways. */
export async function fits(page, what) {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
  await expect(async () => {
    // While Turbo fetches a page it marks the document as busy, on an element where axe does not want that said.
    await expect(page.locator("html[aria-busy]")).toHaveCount(0);
    const found = await new AxeBuilder({ page }).withTags(["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]).analyze();
    expect(found.violations.map((violation) => `${what}: ${violation.id} ${violation.nodes[0].html}`)).toEqual([]);
  }).toPass({ timeout: 40_000 });
  for (const width of [1280, 390, 320]) {
    await page.setViewportSize({ width, height: 844 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth), `${what} at ${width}`).toBeLessThanOrEqual(width);
  }
}

/** Opens each path and looks whether it fits everyone. */
export async function fitEveryone(page, paths) {
  for (const path of paths) {
    await page.goto(path);
    await fits(page, path);
  }
}

export async function signIn(page, who) {
  await page.goto("/sign-in");
  await page.getByLabel("E-mail address").fill(`${who}@layby.example`);
  await page.getByLabel("Password").fill("layby-demo");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("heading", { name: "Inbox" })).toBeVisible();
}

/** A browser of its own for `who`, at their inbox. */
export async function browserOf(browser, who, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  await signIn(page, who);
  return page;
}

let filed = 0;

/** Files a claim that the record does not explain, and answers its address. Each is for a charge of its own. */
export async function fileClaim(page, merchant = "Hotel am Ring") {
  await page.goto("/claims/new");
  await page.getByLabel("Who was paid").fill(`${merchant} ${process.pid}-${++filed}`);
  await page.getByLabel("Amount").fill("61.50");
  await page.getByLabel("Category").selectOption("lodging");
  await page.getByRole("button", { name: "File the claim" }).click();
  await page.waitForURL(/\/claims\/[0-9a-f-]{36}$/);
  return page.url();
}

/** Without JavaScript a page is looked at again; with it, it shows by itself. */
export async function untilPending(page, scripted = true) {
  const pending = page.getByTestId("pending");
  await expect(async () => {
    if (!scripted) await page.reload();
    await expect(pending).toBeVisible({ timeout: scripted ? 8_000 : 300 });
  }).toPass();
  return pending;
}
