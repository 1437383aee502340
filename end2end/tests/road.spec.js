import { expect, test } from "@playwright/test";
import { browserOf, fileClaim, fitEveryone, outsideAgent, untilPending } from "./support.js";

test("a claim's question is answered at the top of the claim, and the claim moves on without a reload", async ({ browser }) => {
  const page = await browserOf(browser, "mia");
  await fileClaim(page);
  await page.evaluate(() => (window.stayed = true));
  const pending = await untilPending(page);
  await expect(pending).toContainText("What was the 61.50 EUR");
  await pending.getByLabel("Your answer").fill("The customer workshop");
  await pending.getByRole("button", { name: "Send the answer" }).click();
  await expect(page.getByTestId("review-state")).toHaveAttribute("data-state", "completed");
  await expect(page.getByTestId("record")).toContainText("Mia Lindqvist answered after less than a minute.");
  await expect(page.getByTestId("pending")).toHaveCount(0);
  expect(await page.evaluate(() => window.stayed)).toBe(true);
});

test("the same road without JavaScript", async ({ browser }) => {
  const page = await browserOf(browser, "mia", { javaScriptEnabled: false });
  await fileClaim(page);
  const pending = await untilPending(page, false);
  await pending.getByLabel("Your answer").fill("The customer workshop");
  await pending.getByRole("button", { name: "Send the answer" }).click();
  await expect(async () => {
    await page.reload();
    await expect(page.getByTestId("review-state")).toHaveAttribute("data-state", "completed", { timeout: 300 });
  }).toPass();
});

test("a question asked elsewhere shows in an open inbox by itself", async ({ browser }) => {
  const page = await browserOf(browser, "sam");
  const other = await browserOf(browser, "sam");
  await fileClaim(other, "Pension Live");
  await expect(page.getByTestId("inbox-line").filter({ hasText: "Pension Live" }).first()).toBeVisible();
});

test("a manager stops waiting work, and a late answer is refused with a sentence and the typed text kept", async ({ browser }) => {
  const page = await browserOf(browser, "sam", { javaScriptEnabled: false });
  const claim = await fileClaim(page);
  await untilPending(page, false);
  await page.getByLabel("Your answer").fill("I typed this before it was stopped");

  const manager = await browserOf(browser, "noor");
  await manager.goto(claim);
  const task = await manager.evaluate(async (url) => {
    const html = await (await fetch("/tasks")).text();
    const name = document.querySelector("h1").textContent.replace(/ 61\.50 EUR.*/, "").trim();
    const page = new DOMParser().parseFromString(html, "text/html");
    return [...page.querySelectorAll(".lines a")].find((link) => link.textContent.includes(name)).getAttribute("href");
  }, claim);
  await manager.goto(task);
  await manager.getByText("Stop this work").click();
  await manager.getByLabel(/^Why\?/).fill("The trip was cancelled");
  await manager.getByRole("button", { name: "Stop the work" }).click();
  await expect(manager.getByTestId("receipt")).toContainText("cancelled");

  const answered = page.waitForResponse((response) => response.request().method() === "POST");
  await page.getByRole("button", { name: "Send the answer" }).click();
  expect((await answered).status()).toBe(409);
  await expect(page.getByTestId("refusal")).toContainText("The trip was cancelled");
  await expect(page.getByTestId("typed")).toContainText("I typed this before it was stopped");
});

test("somebody else's question is not there, and who may only see it gets a sentence", async ({ browser }) => {
  const sam = await browserOf(browser, "sam");
  await fileClaim(sam, "Pension Private");
  await untilPending(sam);
  const address = await sam.locator("form.answer").getAttribute("action");
  const mia = await browserOf(browser, "mia");
  expect((await mia.goto(address)).status()).toBe(404);
  const ada = await browserOf(browser, "ada");
  expect((await ada.goto(address)).status()).toBe(200);
  await expect(ada.getByText("only they or a manager can answer it")).toBeVisible();
  await expect(ada.locator("form.answer")).toHaveCount(0);
  const forged = await ada.request.post(address, { form: { answer: "forged", revision: "1" }, headers: { origin: new URL(ada.url()).origin } });
  expect(forged.status()).toBe(403);
  expect(await forged.text()).toContain("forged");
});

test("a refused claim says what is wrong with each field and keeps what was typed", async ({ browser }) => {
  const page = await browserOf(browser, "mia");
  await page.goto("/claims/new");
  await page.getByLabel("Who was paid").fill("Café </textarea><script>window.pwned=1</script>");
  await page.getByLabel("Amount").fill("1,20");
  await page.getByLabel("Category").selectOption("meals");
  const words = "</textarea><script>window.pwned=1</script>";
  await page.getByLabel("What it was for").fill(words);
  await page.getByRole("button", { name: "File the claim" }).click();
  await expect(page.getByText("Use a point before the cents")).toBeVisible();
  await expect(page.getByLabel("What it was for")).toHaveValue(words);
  await expect(page.getByLabel("Amount")).toHaveValue("1,20");
  await page.getByLabel("Amount").fill("1.20");
  await page.getByRole("button", { name: "File the claim" }).click();
  await expect(page.locator("dd.words").first()).toHaveText(words);
  expect(await page.evaluate(() => window.pwned)).toBeUndefined();
});

test("an outside agent's question stands in the same inbox, harmless whatever it writes, and its poll gets the answer", async ({ browser, request }) => {
  const { headers, ask } = outsideAgent("Refunds");
  const hostile = "</textarea><script>window.pwned=1</script><img src=x onerror=window.pwned=1>";
  const slot = await ask(request, {
    message: `Refund A-17? ${hostile}`,
    context: `${hostile} [x](javascript:window.pwned=1) **bold**`,
    priority: "urgent",
  });
  const page = await browserOf(browser, "mia");
  await page.getByTestId("inbox-line").filter({ hasText: "Refund A-17?" }).getByRole("link").click();
  await expect(page.getByText(hostile).first()).toBeVisible();
  await expect(page.locator(".context strong")).toHaveText("bold");
  await expect(page.locator("main img, main a[href^=javascript]")).toHaveCount(0);
  const poll = request.get(`/api/v1/slots/${slot.id}?wait=30s`, { headers });
  await page.getByLabel("Your answer").fill(hostile);
  await page.getByRole("button", { name: "Send the answer" }).click();
  const answered = await (await poll).json();
  expect([answered.status, answered.answer.value, answered.outcome.by]).toEqual(["answered", hostile, "mia@layby.example"]);
  await expect(page.locator("blockquote.said")).toHaveText(hostile);
  expect(await page.evaluate(() => window.pwned)).toBeUndefined();
});

test("a live refresh never takes away what is being typed", async ({ browser }) => {
  const page = await browserOf(browser, "sam");
  const claim = await fileClaim(page, "Pension Typed");
  await untilPending(page);
  await page.getByLabel("Your answer").fill("half a sen");
  const manager = await browserOf(browser, "noor");
  await manager.goto(claim);
  await manager.getByLabel("Your answer").fill("I know this one");
  await manager.getByRole("button", { name: "Send the answer" }).click();
  await expect(manager.getByTestId("review-state")).toHaveAttribute("data-state", "completed");
  await expect(page.getByTestId("review-state")).toHaveAttribute("data-state", "completed");
  await expect(page.getByTestId("typed")).toContainText("half a sen");
  await expect(page.getByText("Noor Haddad answered on behalf of Sam Okafor").first()).toBeVisible();
});

test("with the keyboard alone somebody signs in, opens the first question and answers it", async ({ browser }) => {
  const filer = await browserOf(browser, "mia");
  await fileClaim(filer, "Pension Keys");
  await untilPending(filer);
  const page = await (await browser.newContext()).newPage();
  await page.goto("/sign-in");
  await page.getByLabel("E-mail address").focus();
  await page.keyboard.type("mia@layby.example");
  await page.keyboard.press("Tab");
  await page.keyboard.type("layby-demo");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("inbox-line").first()).toBeVisible();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("pending")).toBeVisible();
});

for (const colorScheme of ["light", "dark"]) {
  test(`pages are accessible and never scroll sideways, ${colorScheme}`, async ({ browser }) => {
    // Many pages, each looked at by axe: long on a busy machine, and nothing here depends on time.
    test.setTimeout(180_000);
    const page = await browserOf(browser, "noor", { colorScheme });
    const claim = await fileClaim(page);
    await untilPending(page);
    const slot = await page.locator("form.answer").getAttribute("action");
    await fitEveryone(page, ["/", slot, claim, "/claims", "/claims/new", "/tasks", "/account"]);
  });
}
