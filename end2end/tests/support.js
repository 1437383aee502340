import { execFileSync } from "node:child_process";
import { expect } from "@playwright/test";

export const layby = (...args) =>
  execFileSync(`${process.env.CARGO_TARGET_DIR ?? "../target"}/debug/layby`, args, { encoding: "utf8" }).trim();

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
