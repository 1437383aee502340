import { expect, test } from "@playwright/test";
import { browserOf, outsideAgent } from "./support.js";

let ask;
let read;

test.beforeAll(() => ({ ask, read } = outsideAgent("Answers")));

const answer = (page) => page.getByLabel("Your answer");
const send = (page) => page.getByRole("button", { name: "Send the answer" }).click();

/** What is asked, how it is answered, and what arrives. */
const kinds = [
  ["a text", {}, (page) => answer(page).fill("Yes & <b>no</b>\nthere"), "Yes & <b>no</b>\nthere"],
  ["a short text", { schema: { type: "string", maxLength: 20 } }, (page) => answer(page).fill("A-17"), "A-17"],
  ["a number", { schema: { type: "number" } }, (page) => answer(page).fill("12.50"), 12.5],
  ["a whole number", { schema: { type: "integer", minimum: 1 } }, (page) => answer(page).fill("3"), 3],
  ["a date", { schema: { type: "string", format: "date" } }, (page) => answer(page).fill("2031-03-04"), "2031-03-04"],
  ["a moment", { schema: { type: "string", format: "date-time" } }, (page) => answer(page).fill("2031-03-05T10:30"), "2031-03-05T10:30:00Z"],
  ["an address", { schema: { type: "string", format: "email" } }, (page) => answer(page).fill("kim@example.com"), "kim@example.com"],
  ["one of a list", { schema: { enum: ["post", 2] } }, (page) => answer(page).selectOption({ label: "2" }), 2],
  ["several of a list", { schema: { type: "array", items: { enum: ["a", "b", "c"] } } }, async (page) => {
    await page.getByLabel("a", { exact: true }).check();
    await page.getByLabel("c", { exact: true }).check();
  }, ["a", "c"]],
  ["lines", { schema: { type: "array", items: { type: "number" } } }, (page) => answer(page).fill("1\n2.5\n"), [1, 2.5]],
  ["yes or no", { schema: { type: "boolean" } }, (page) => answer(page).check(), true],
  ["yes, no or nothing", { schema: { type: ["boolean", "null"] } }, (page) => answer(page).selectOption({ label: "No" }), false],
  ["nothing", { schema: { anyOf: [{ type: "integer" }, { type: "null" }] } }, async () => {}, null],
  ["a nested form", {
    schema: {
      $defs: { Size: { enum: ["small", "large"], title: "Size" } },
      type: "object",
      required: ["size", "to"],
      properties: { size: { $ref: "#/$defs/Size" }, to: { type: "object", title: "To", required: ["street"], properties: { street: { type: "string", title: "Street" } } } },
    },
  }, async (page) => {
    await page.getByLabel("Size").selectOption({ label: "large" });
    await page.getByLabel("Street").fill("Elm Street 1");
  }, { size: "large", to: { street: "Elm Street 1" } }],
];

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with JavaScript" : "without JavaScript";

  test(`each kind of answer is given in the page and arrives as it was meant, ${how}`, async ({ browser, request }) => {
    const page = await browserOf(browser, "mia", { javaScriptEnabled });
    for (const [what, asked, fill, value] of kinds) {
      const slot = await ask(request, { message: `Please: ${what}?`, ...asked });
      await page.goto(`/slots/${slot.id}`);
      await fill(page);
      await send(page);
      await expect(page.locator(".outcome"), what).toContainText("Mia Lindqvist answered");
      expect((await read(request, slot)).answer.value, what).toEqual(value);
    }
  });

  test(`one of the options is a button, ${how}`, async ({ browser, request }) => {
    const slot = await ask(request, { message: "Which?", options: [{ value: { id: 7 }, label: "Seven & more" }, { value: null, label: "None" }] });
    const page = await browserOf(browser, "mia", { javaScriptEnabled });
    await page.goto(`/slots/${slot.id}`);
    await page.getByRole("button", { name: "Seven & more" }).click();
    await expect(page.locator(".outcome")).toContainText("Mia Lindqvist answered");
    await expect(page.locator("main")).toContainText("Seven & more");
    expect((await read(request, slot)).answer.value).toEqual({ id: 7 });
  });

  test(`what has no form is answered as JSON, and stays when it is none yet, ${how}`, async ({ browser, request }) => {
    const schema = { type: "array", items: { type: "array", items: { type: "number" } } };
    const slot = await ask(request, { message: "The matrix?", schema });
    const page = await browserOf(browser, "mia", { javaScriptEnabled });
    await page.goto(`/slots/${slot.id}`);
    const json = page.getByLabel("Your answer, as JSON");
    for (const [text, sentence] of [["[[1, 2], [3", "This is not JSON yet"], ["[[1, \"</textarea>\"]]", "Write a number."]]) {
      await json.fill(text);
      await send(page);
      await expect(page.getByText(sentence).first()).toBeVisible();
      await expect(json).toHaveValue(text);
    }
    await json.fill("[[1, 2], [3, 4.5]]");
    await send(page);
    await expect(page.locator(".outcome")).toContainText("Mia Lindqvist answered");
    expect((await read(request, slot)).answer.value).toEqual([[1, 2], [3, 4.5]]);
  });

  test(`a client's tool is shown with its arguments and takes its output, in fields or as JSON, ${how}`, async ({ browser, request }) => {
    const action = { tool: "scale", arguments: { unit: "kg", parcel: "P-1" } };
    const fields = await ask(request, { kind: "client_tool", message: "Weigh it.", action, schema: { type: "object", required: ["weight"], properties: { weight: { type: "number", title: "Weight" } } } });
    const anything = await ask(request, { kind: "client_tool", message: "Weigh it again.", action });
    const page = await browserOf(browser, "mia", { javaScriptEnabled });
    await page.goto(`/slots/${fields.id}`);
    await expect(page.getByTestId("action")).toContainText("P-1");
    await page.getByLabel("Weight").fill("1.25");
    await send(page);
    await expect(page.locator(".outcome")).toContainText("Mia Lindqvist answered");
    expect((await read(request, fields)).answer.value).toEqual({ weight: 1.25 });
    await page.goto(`/slots/${anything.id}`);
    await page.getByLabel("Your answer, as JSON").fill("{\"grams\": 1250}");
    await send(page);
    await expect(page.locator(".outcome")).toContainText("Mia Lindqvist answered");
    expect((await read(request, anything)).answer.value).toEqual({ grams: 1250 });
  });

  test(`an approval that was changed underneath comes back with what runs now, and is not given, ${how}`, async ({ browser, request }) => {
    const action = { tool: "refund", arguments: { amount: 40, note: "Lamp" }, editable: ["/amount", "/note"] };
    const slot = await ask(request, { kind: "approval", message: "Refund?", action, needs: 2, ask: ["mia@layby.example", "sam@layby.example"] });
    const mia = await browserOf(browser, "mia", { javaScriptEnabled });
    await mia.goto(`/slots/${slot.id}`);
    await mia.getByLabel("Note").fill("Typed by Mia");
    const sam = await browserOf(browser, "sam");
    await sam.goto(`/slots/${slot.id}`);
    await sam.getByLabel("Amount").fill("30");
    await sam.getByRole("button", { name: "Approve" }).click();
    await expect(sam.getByText("it needs 1 more")).toBeVisible();
    // A page that is live says so itself; any other is told when it sends.
    if (javaScriptEnabled) await expect(mia.getByTestId("changed")).toContainText("Read it again");
    else {
      await mia.getByRole("button", { name: "Approve" }).click();
      await expect(mia.getByTestId("refusal")).toContainText("changed");
    }
    await expect(mia.getByLabel("Amount")).toHaveValue("30");
    await expect(mia.getByLabel("Note")).toHaveValue("Lamp");
    await expect(mia.getByText("Typed by Mia").first()).toBeVisible();
    expect((await read(request, slot)).status).toBe("waiting");
    await mia.getByRole("button", { name: "Approve" }).click();
    await expect(mia.locator(".outcome")).toContainText("approved it");
    expect((await read(request, slot)).answer.arguments).toEqual({ amount: 30, note: "Lamp" });
  });
}

/** What a browser lets through and what the server takes; the model of a browser that the tests of forms use is checked by it. */
const checks = [
  [{ type: "string", minLength: 3, maxLength: 5 }, ["ab", "abc", "abcde", "äß東", "a b c d"]],
  [{ type: "string", maxLength: 20, pattern: "^[A-Z]{2}-[0-9]+$" }, ["AB-1", "ab-1", "AB-", "xAB-1"]],
  [{ type: "string", maxLength: 20, pattern: "X" }, ["aXb", "ab"]],
  [{ type: "integer", exclusiveMinimum: 2, maximum: 9 }, ["2", "3", "9", "10", "3.5"]],
  [{ type: "integer", minimum: 0, multipleOf: 5 }, ["0", "5", "7"]],
  [{ type: "string" }, ["", " x", "x".repeat(300)]],
];

test("a browser's own check and the server's agree", async ({ browser, request }) => {
  const page = await browserOf(browser, "mia");
  for (const [schema, texts] of checks) {
    for (const text of texts) {
      const slot = await ask(request, { message: "Fits?", schema });
      await page.goto(`/slots/${slot.id}`);
      const field = answer(page);
      // Typed letter by letter: only what somebody typed is checked for its length, and no more than fits can be typed.
      await field.pressSequentially(text.length > 50 ? "x" : text);
      const shown = await field.inputValue();
      const form = page.locator("form.answer");
      const takes = await form.evaluate((form) => form.checkValidity());
      await form.evaluate((form) => (form.noValidate = true));
      await send(page);
      const outcome = page.locator(".outcome");
      const wrong = page.locator(".answer [aria-invalid=true]");
      await expect(outcome.or(wrong).first()).toBeVisible();
      expect(await outcome.isVisible(), `${JSON.stringify(schema)} takes "${shown}"`).toBe(takes);
    }
  }
});
