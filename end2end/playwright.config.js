import { defineConfig } from "@playwright/test";

export const port = Number(process.env.LAYBY_E2E_PORT ?? 3987);

export default defineConfig({
  testDir: "tests",
  outputDir: "test-results",
  // Two browsers and a server share two cores with whatever else runs: a test that fails is tried again, and told as flaky.
  retries: 2,
  workers: 2,
  fullyParallel: true,
  timeout: 40_000,
  reporter: "list",
  use: {
    testIdAttribute: "data-test",
    baseURL: `http://127.0.0.1:${port}`,
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
    },
  },
  webServer: {
    command: `${process.env.CARGO_TARGET_DIR ?? "../target"}/debug/layby serve --demo`,
    url: `http://127.0.0.1:${port}/readyz`,
    env: { LAYBY_LISTEN: `127.0.0.1:${port}`, LAYBY_LOG: "warn" },
    gracefulShutdown: { signal: "SIGTERM", timeout: 10_000 },
  },
});
