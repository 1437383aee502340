import { expect, test } from "@playwright/test";
import { browserOf, fitEveryone, outsideAgent } from "./support.js";

let ask;

test.beforeAll(() => ({ ask } = outsideAgent("Clocks")));

for (const javaScriptEnabled of [true, false]) {
  test(`a policy's preview says when an answer is due, by business time, ${javaScriptEnabled ? "with" : "without"} JavaScript`, async ({ browser }) => {
    const page = await browserOf(browser, "ada", { javaScriptEnabled });
    await page.goto("/admin/settings");
    await page.getByLabel("An answer may take").fill("soon");
    await page.getByRole("button", { name: "Preview" }).click();
    await expect(page.getByText("Write a duration like").first()).toBeVisible();
    await page.getByLabel("An answer may take").fill("4h");
    await page.getByLabel("First reminder after").fill("1h");
    await page.getByLabel("Then every").fill("2h");
    await page.getByLabel("At most").fill("2");
    await page.getByLabel(/^Try it/).fill("2026-12-04T16:40");
    await page.getByRole("button", { name: "Preview" }).click();
    const preview = page.getByTestId("preview");
    await expect(preview).toContainText("Asked Friday 4 December, 16:40, with a target of 4h business time:");
    await expect(preview).toContainText("Monday 7 December, 11:40");
    await expect(preview).toContainText("Friday 4 December, 17:40; Monday 7 December, 10:40");
    await expect(page.getByLabel("At most")).toHaveValue("2");
  });
}

test("holidays are read from a file, looked at, and saved; a policy is saved, removed, and put back", async ({ browser }) => {
  const page = await browserOf(browser, "ada");
  await page.goto("/admin/settings");
  const ics = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//EN\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20261225\r\nRRULE:FREQ=YEARLY\r\nSUMMARY:Christmas\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
  await page.getByLabel("Add holidays from an .ics file").setInputFiles({ name: "h.ics", mimeType: "text/calendar", buffer: Buffer.from(ics) });
  await page.getByRole("button", { name: "Save the calendar" }).click();
  await expect(page.getByText("1 day was read from the file.")).toBeVisible();
  await expect(page.getByLabel("Holidays, one to a line")).toHaveValue("12-25 Christmas");
  await page.getByLabel("Monday").fill("9-25");
  await page.getByRole("button", { name: "Save the calendar" }).click();
  await expect(page.getByText("are no hours").first()).toBeVisible();
  await expect(page.getByLabel("Holidays, one to a line")).toHaveValue("12-25 Christmas");
  await page.getByLabel("Monday").fill("9-18");
  await page.getByRole("button", { name: "Save the calendar" }).click();
  await page.goto("/admin/settings");
  await expect(page.getByLabel("Holidays, one to a line")).toHaveValue("12-25 Christmas");

  await page.getByLabel("Kind").selectOption("human");
  await page.getByRole("button", { name: "Save the policy" }).click();
  const line = page.getByTestId("policies").getByText("human", { exact: true });
  await expect(line).toBeVisible();
  await page.getByTestId("policies").getByRole("link", { name: "Change" }).click();
  await expect(page.getByLabel("Kind")).toHaveValue("human");
  await page.getByTestId("policies").getByRole("button", { name: "Remove" }).click();
  await expect(line).toHaveCount(0);
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(line).toBeVisible();
  await page.getByTestId("policies").getByRole("button", { name: "Remove" }).click();
  await expect(line).toHaveCount(0);
  const manager = await browserOf(browser, "noor");
  expect((await manager.goto("/admin/settings")).status()).toBe(403);
});

test("a late question is in the sponsor's news, its history says so, and its due date is moved with a reason", async ({ browser, request }) => {
  const slot = await ask(request, { message: "Are you late?", target: "1s", remind: { after: "1s" } });
  const mia = await browserOf(browser, "mia");
  await expect(mia.getByTestId("news").getByText("Are you late?").first()).toBeVisible();
  const noor = await browserOf(browser, "noor");
  await expect(noor.getByTestId("news").getByText("Are you late?").first()).toBeVisible();
  await noor.getByRole("button", { name: "I have seen these" }).click();
  await expect(noor.getByTestId("news")).toHaveCount(0);
  await noor.goto(`/slots/${slot.id}`);
  await expect(noor.getByText("Overdue")).toBeVisible();
  await expect(noor.getByTestId("record")).toContainText("Noor Haddad, the sponsor, was told.");
  await noor.getByText("Move the due date").click();
  await noor.getByLabel(/^To when/).fill("2020-01-01T10:00");
  await noor.getByLabel("Why? It is recorded.").fill("They need more time.");
  await noor.getByRole("button", { name: "Move it" }).click();
  await expect(noor.getByText("still to come").first()).toBeVisible();
  await expect(noor.getByLabel("Why? It is recorded.")).toHaveValue("They need more time.");
  await noor.getByLabel(/^To when/).fill("2035-01-01T10:00");
  await noor.getByRole("button", { name: "Move it" }).click();
  await expect(noor.getByTestId("record")).toContainText("moved the due date to 1 January 2035");
  await expect(noor.getByText("Overdue")).toHaveCount(0);
});

for (const colorScheme of ["light", "dark"]) {
  test(`settings are accessible and never scroll sideways, ${colorScheme}`, async ({ browser }) => {
    test.setTimeout(120_000);
    const page = await browserOf(browser, "ada", { colorScheme });
    await fitEveryone(page, ["/admin/settings", "/account", "/"]);
  });
}
