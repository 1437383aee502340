import { expect, test } from "@playwright/test";
import { browserOf, fileClaim, fitEveryone, layby, outsideAgent, untilPending } from "./support.js";

const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
let headers;
let ask;
let read;

test.beforeAll(() => ({ headers, ask, read } = outsideAgent("Kinds")));

const refund = {
  kind: "approval",
  message: "Refund 40 EUR for A-17?",
  action: { tool: "refund", arguments: { order: "A-17", amount: 40, note: "Lamp </script>" }, editable: ["/amount", "/note"] },
};

const form = {
  message: "How should the return be handled?",
  schema: {
    type: "object",
    required: ["amount", "when", "contact", "agree"],
    properties: {
      amount: { type: "number", title: "Amount in EUR", exclusiveMinimum: 0, maximum: 500, description: "What we pay back." },
      when: { type: "string", format: "date", title: "When" },
      pickup: { type: "string", format: "date-time", title: "Pick-up" },
      ways: { type: "array", title: "Ways", items: { enum: ["post", "shop", "courier"] }, minItems: 1 },
      tags: { type: "array", title: "Tags", items: { type: "string" } },
      speed: { title: "Speed", oneOf: [{ const: 1, title: "Fast" }, { const: 2, title: "Slow" }] },
      contact: { type: "object", title: "Contact", required: ["email"], properties: { email: { type: "string", format: "email", title: "E-mail" } } },
      agree: { const: true, title: "The customer agreed" },
    },
  },
};

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with JavaScript" : "without JavaScript";

  test(`a form of every field is filled in, refused per field with nothing lost, and arrives, ${how}`, async ({ browser, request }) => {
    const slot = await ask(request, form);
    const page = await browserOf(browser, "mia", { javaScriptEnabled });
    await page.goto(`/slots/${slot.id}`);
    await page.getByLabel("Amount in EUR").fill("0");
    await page.getByLabel("When").fill("2031-03-04");
    await page.getByLabel("Pick-up").fill("2031-03-05T10:30");
    await page.getByLabel("Tags").fill("urgent\nfragile & <b>");
    await page.getByLabel("Speed").selectOption({ label: "Slow" });
    await page.getByLabel("E-mail", { exact: true }).fill("kim@example.com");
    await page.getByLabel("courier").check();
    await page.getByLabel("The customer agreed").check();
    await page.getByRole("button", { name: "Send the answer" }).click();
    await expect(page.getByText("Must be more than 0.").first()).toBeVisible();
    await expect(page.getByLabel("Tags")).toHaveValue("urgent\nfragile & <b>");
    await expect(page.getByLabel("courier")).toBeChecked();
    await expect(page.getByLabel("E-mail", { exact: true })).toHaveValue("kim@example.com");
    await expect(page.getByLabel("Amount in EUR")).toHaveAttribute("aria-invalid", "true");
    await page.getByLabel("Amount in EUR").fill("12.50");
    await page.getByLabel("post").check();
    await page.getByRole("button", { name: "Send the answer" }).click();
    await expect(page.locator(".outcome")).toContainText("Mia Lindqvist answered");
    expect((await read(request, slot)).answer.value).toEqual({
      amount: 12.5,
      when: "2031-03-04",
      pickup: "2031-03-05T10:30:00Z",
      ways: ["post", "courier"],
      tags: ["urgent", "fragile & <b>"],
      speed: 2,
      contact: { email: "kim@example.com" },
      agree: true,
    });
  });

  test(`an approval shows what runs, is edited, and each edit stands as before and after, ${how}`, async ({ browser, request }) => {
    const slot = await ask(request, refund);
    const page = await browserOf(browser, "mia", { javaScriptEnabled });
    await page.goto(`/slots/${slot.id}`);
    await expect(page.getByTestId("action")).toContainText("Lamp </script>");
    await page.getByLabel("Amount").fill("30");
    await page.getByRole("button", { name: "Approve" }).click();
    await expect(page.locator(".outcome")).toContainText("approved it with a change");
    await expect(page.getByTestId("action").locator("del").first()).toContainText("40");
    const { answer } = await read(request, slot);
    expect([answer.edited, answer.arguments.amount, answer.arguments.order]).toEqual([true, 30, "A-17"]);
  });

  test(`a rejection needs a reason, and what was typed stays, ${how}`, async ({ browser, request }) => {
    const slot = await ask(request, refund);
    const page = await browserOf(browser, "mia", { javaScriptEnabled });
    await page.goto(`/slots/${slot.id}`);
    await page.getByLabel("Note").fill("Changed");
    await page.getByText("Reject …").click();
    await page.getByRole("button", { name: "Reject it" }).click();
    await expect(page.getByText("Say why, in a few words").first()).toBeVisible();
    await expect(page.getByLabel("Note")).toHaveValue("Changed");
    await page.getByLabel(/^Why not/).fill("Too much </textarea>");
    await page.getByRole("button", { name: "Reject it" }).click();
    await expect(page.locator("blockquote.said")).toHaveText("Too much </textarea>");
    expect((await read(request, slot)).answer.value).toEqual({ decision: "reject", reason: "Too much </textarea>" });
  });

  test(`a secret is never shown again, not even when it is refused, ${how}`, async ({ browser, request }) => {
    const slot = await ask(request, { message: "The mailbox's password?", secret: true });
    const page = await browserOf(browser, "mia", { javaScriptEnabled });
    await page.goto(`/slots/${slot.id}`);
    const other = await browserOf(browser, "noor");
    await other.goto(`/slots/${slot.id}`);
    await other.getByLabel("The secret").fill("first-hunter2");
    await page.getByLabel("The secret").fill("late-hunter3");
    await other.getByRole("button", { name: "Send the answer" }).click();
    await expect(other.getByText("sealed until the agent takes it")).toBeVisible();
    if (javaScriptEnabled) await expect(page.getByText("sealed until the agent takes it")).toBeVisible();
    else {
      await page.getByRole("button", { name: "Send the answer" }).click();
      await expect(page.getByTestId("refusal")).toContainText("answered this first");
    }
    for (const open of [page, other]) {
      const html = await open.content();
      expect(html.includes("hunter2") || html.includes("hunter3")).toBe(false);
    }
    const taken = await request.post(`/api/v1/slots/${slot.id}/secret`, { headers });
    expect(await taken.json()).toEqual({ value: "first-hunter2" });
    await page.goto(`/slots/${slot.id}`);
    await expect(page.getByText("handed to the agent, once, and wiped")).toBeVisible();
  });

  test(`a picture is handed in, kept when the form is refused, and shown, ${how}`, async ({ browser, request }) => {
    const slot = await ask(request, {
      message: "The receipt?",
      schema: {
        type: "object",
        required: ["receipt", "total"],
        properties: { receipt: { type: "string", format: "file", title: "Receipt" }, total: { type: "number", title: "Total", exclusiveMinimum: 0 } },
      },
    });
    const page = await browserOf(browser, "mia", { javaScriptEnabled });
    await page.goto(`/slots/${slot.id}`);
    await page.getByLabel("Receipt").setInputFiles({ name: "receipt.png", mimeType: "image/png", buffer: Buffer.from("<script>") });
    await page.getByLabel("Total").fill("0");
    await page.getByRole("button", { name: "Send the answer" }).click();
    await expect(page.getByText("Hand in a PDF, or a PNG or JPEG picture.").first()).toBeVisible();
    await page.getByLabel("Receipt").setInputFiles({ name: "receipt.png", mimeType: "image/png", buffer: pixel });
    await page.getByRole("button", { name: "Send the answer" }).click();
    await expect(page.getByText("Must be more than 0.").first()).toBeVisible();
    await expect(page.getByText("receipt.png is kept")).toBeVisible();
    await page.getByLabel("Total").fill("9.90");
    await page.getByRole("button", { name: "Send the answer" }).click();
    const picture = page.locator(".files img");
    await expect(picture).toBeVisible();
    await expect.poll(() => picture.evaluate((image) => image.complete && image.naturalWidth)).toBe(1);
    expect((await read(request, slot)).answer.files[0].name).toBe("receipt.png");
  });

  test(`several questions of one turn are answered with one button, all or none, ${how}`, async ({ browser, request }) => {
    const first = await ask(request, { message: "Which one?", options: [{ value: 1, label: "One" }, { value: 2, label: "Two" }] });
    const second = await ask(request, { task_id: first.task_id, message: "How many?", schema: { type: "integer", exclusiveMinimum: 2 } });
    const third = await ask(request, { task_id: first.task_id, ...refund });
    const page = await browserOf(browser, "mia", { javaScriptEnabled });
    await page.goto(`/tasks/${first.task_id}/questions`);
    await page.getByLabel("Two", { exact: true }).check();
    await page.locator("input[type=number]").first().fill("7");
    await page.getByLabel("Reject", { exact: true }).check();
    await page.getByRole("button", { name: "Send all 3 answers" }).click();
    await expect(page.getByTestId("refusal")).toContainText("Nothing was handed in.");
    await expect(page.getByText("Say why, in a few words").first()).toBeVisible();
    await expect(page.getByLabel("Two", { exact: true })).toBeChecked();
    expect((await read(request, first)).status).toBe("waiting");
    await page.getByLabel(/^Why not/).fill("Not this one");
    await page.getByRole("button", { name: "Send all 3 answers" }).click();
    await expect(page.getByRole("heading", { name: "Inbox" })).toBeVisible();
    expect((await read(request, first)).answer.value).toBe(2);
    expect((await read(request, second)).answer.value).toBe(7);
    expect((await read(request, third)).answer.value.decision).toBe("reject");
  });

  test(`a question is taken, handed over, declined, and its history tells it, ${how}`, async ({ browser, request }) => {
    const slot = await ask(request, { message: "Who knows?" });
    const page = await browserOf(browser, "mia", { javaScriptEnabled });
    await page.goto(`/slots/${slot.id}`);
    await page.getByRole("button", { name: "I’m on it" }).click();
    await expect(page.getByTestId("on-it")).toContainText("You are on it");
    await page.getByText("Hand it to somebody else").click();
    await page.getByLabel(/^To whom/).fill("nobody@example.com");
    await page.getByLabel("Why? They will read it.").fill("Sam was there.");
    await page.getByRole("button", { name: "Hand it over" }).click();
    await expect(page.getByText("is nobody here").first()).toBeVisible();
    await expect(page.getByLabel("Why? They will read it.")).toHaveValue("Sam was there.");
    await page.getByLabel(/^To whom/).fill("sam@layby.example");
    await page.getByRole("button", { name: "Hand it over" }).click();
    await expect(page.getByRole("heading", { name: "Inbox" })).toBeVisible();
    expect((await page.goto(`/slots/${slot.id}`)).status()).toBe(404);
    const sam = await browserOf(browser, "sam", { javaScriptEnabled });
    await sam.goto(`/slots/${slot.id}`);
    await sam.getByText("Decline to answer").click();
    await sam.getByLabel(/^Why\? Others/).fill("I was not there.");
    await sam.getByRole("button", { name: "Decline", exact: true }).click();
    await expect(sam.getByRole("heading", { name: "Inbox" })).toBeVisible();
    const noor = await browserOf(browser, "noor", { javaScriptEnabled });
    await noor.goto(`/slots/${slot.id}`);
    await expect(noor.getByTestId("record")).toContainText("Mia Lindqvist handed the question to Sam Okafor: Sam was there.");
    await expect(noor.getByTestId("record")).toContainText("Sam Okafor declined: I was not there.");
  });

  test(`a manager takes work over, writes to the agent and gives it back, ${how}`, async ({ browser }) => {
    const mia = await browserOf(browser, "mia");
    const claim = await fileClaim(mia, "Pension Taken");
    await untilPending(mia);
    const noor = await browserOf(browser, "noor", { javaScriptEnabled });
    await noor.goto(claim);
    await noor.goto(await noor.locator("form.answer").getAttribute("action"));
    await noor.locator(".crumbs a[href^='/tasks/']").click();
    await noor.getByRole("button", { name: "Take it over" }).click();
    await expect(noor.getByTestId("pending").filter({ hasText: "give the work back" })).toBeVisible();
    await noor.getByLabel(/^Write to the agent/).fill("Approve it, I know the trip.");
    await noor.getByRole("button", { name: "Give the work back" }).click();
    await expect(noor.getByTestId("record")).toContainText("gave the work back");
    await noor.getByRole("button", { name: "Take it over" }).click();
    await noor.getByLabel(/^Or hand in/).fill("I finished it myself.");
    await noor.getByRole("button", { name: "Hand in the result" }).click();
    await expect(noor.getByTestId("receipt")).toContainText("done");
    await expect(noor.getByTestId("receipt")).toContainText("I finished it myself.");
  });
}

test("two of two approve, and the second sees who was first", async ({ browser, request }) => {
  const slot = await ask(request, { ...refund, needs: 2, ask: ["mia@layby.example", "sam@layby.example"] });
  const mia = await browserOf(browser, "mia");
  const sam = await browserOf(browser, "sam");
  await mia.goto(`/slots/${slot.id}`);
  await sam.goto(`/slots/${slot.id}`);
  await mia.getByRole("button", { name: "Approve" }).click();
  await expect(mia.getByText("it needs 1 more")).toBeVisible();
  await expect(sam.getByTestId("votes")).toContainText("1 of 2 approvals: Mia Lindqvist");
  await sam.getByRole("button", { name: "Approve" }).click();
  await expect(sam.locator(".outcome")).toContainText("Sam Okafor approved it");
  await expect(mia.locator(".outcome")).toContainText("Sam Okafor approved it");
});

test("somebody goes away, their cover answers for them, and they come back", async ({ browser, request }) => {
  const ada = await browserOf(browser, "ada");
  await ada.goto("/account");
  await ada.getByLabel("First day").fill("2020-01-01");
  await ada.getByLabel("Who answers for you").selectOption({ label: "Sam Okafor" });
  await ada.getByRole("button", { name: "Save the absence" }).click();
  await expect(ada.getByTestId("away")).toContainText("Sam Okafor answers for you meanwhile");
  const slot = await ask(request, { message: "Ada, is this right?", ask: ["ada@layby.example"] });
  const sam = await browserOf(browser, "sam");
  await sam.goto(`/slots/${slot.id}`);
  await sam.getByLabel("Your answer").fill("It is.");
  await sam.getByRole("button", { name: "Send the answer" }).click();
  await expect(sam.locator(".outcome")).toContainText("on behalf of Ada Novak");
  await ada.getByRole("button", { name: "I am back" }).click();
  await expect(ada.getByRole("button", { name: "Save the absence" })).toBeVisible();
});

test("an agent's context is harmless, its files are downloads, and its links say that they leave", async ({ browser, request }) => {
  const file = await request.post("/api/v1/files?name=page.html", { headers, data: Buffer.from("<script>window.pwned=1</script>") });
  expect(file.status()).toBe(201);
  const slot = await ask(request, {
    message: "Look at this?",
    context: "| a | b |\n|---|---|\n| `code` | ![x](https://example.com/pixel.png) |\n\n<img src=x onerror=window.pwned=1>\n\n[there](https://example.com/)",
    attachments: [(await file.json()).id],
  });
  const page = await browserOf(browser, "mia");
  await page.goto(`/slots/${slot.id}`);
  await expect(page.locator(".context td code")).toHaveText("code");
  await expect(page.locator("main img")).toHaveCount(0);
  const link = page.locator(".context a");
  await expect(link).toHaveAttribute("rel", /noopener/);
  expect(await link.evaluate((a) => getComputedStyle(a, "::after").content)).toContain("↗");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "page.html" }).click()]);
  expect(download.suggestedFilename()).toBe("page.html");
  expect(await page.evaluate(() => window.pwned)).toBeUndefined();
});

for (const colorScheme of ["light", "dark"]) {
  test(`every kind's page is accessible and never scrolls sideways, ${colorScheme}`, async ({ browser, request }) => {
    // Many pages, each looked at by axe: long on a busy machine, and nothing here depends on time.
    test.setTimeout(180_000);
    const two = await ask(request, { message: "First?" });
    const slots = [
      await ask(request, form),
      await ask(request, { ...refund, needs: 2, ask: ["mia@layby.example", "noor@layby.example"] }),
      await ask(request, { message: "The password?", secret: true }),
      await ask(request, { kind: "human", message: "Take over?", ask: ["role:manager"] }),
      await ask(request, { kind: "client_tool", message: "Weigh it.", action: { tool: "scale", arguments: { unit: "kg", deep: { a: "x".repeat(90) } } }, schema: { type: "array", items: { type: "array" } } }),
      await ask(request, { task_id: two.task_id, message: "Second?", options: [{ value: 1, label: "One" }, { value: 2, label: "Two" }] }),
    ];
    const page = await browserOf(browser, "noor", { colorScheme });
    await fitEveryone(page, [...slots.map((slot) => `/slots/${slot.id}`), `/tasks/${two.task_id}/questions`, `/tasks/${two.task_id}`, "/account", "/"]);
  });
}
