// Opens pages in Chromium, light and dark, wide and as on a telephone, and checks them:
// axe finds no serious or critical fault, no script or resource is refused, nothing comes from another host, neither a page
// nor, on a telephone, a table is wider than the window. Then it sends commands, and takes the network away.
// Arguments: JSON with chromium, folder, pages and files (names to addresses; files do not refresh), status (address), token, from node_modules' folder.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const wanted = JSON.parse(process.argv[2]);
const require = createRequire(`${wanted.modules}/`);
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const faults = [];

async function checked(page, name) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run());
  for (const it of found.violations) {
    const line = `${name}: axe ${it.impact} ${it.id}: ${it.help}: ${it.nodes.slice(0, 3).map((node) => node.html.slice(0, 150)).join(" | ")}`;
    if (["serious", "critical"].includes(it.impact)) faults.push(line);
    else console.log(line);
  }
  const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  if (wide > seen) faults.push(`${name}: ${wide} px wide in a window of ${seen} px`);
  // Telephones draw no bar for a table that scrolls: its last column would look as if it were missing.
  const cut = await page.$$eval(".wide", (all) => all.filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.ariaLabel));
  if (cut.length && seen < 700) faults.push(`${name}: tables wider than the window: ${cut.join(", ")}`);
  await page.screenshot({ path: `${wanted.folder}/${name}.png`, fullPage: true });
}

async function opened(browser, name, address, width, dark) {
  const page = await browser.newPage();
  await page.setViewport({ width, height: 1000, deviceScaleFactor: 1 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]);
  page.on("console", (it) => { if (it.type() === "error" && !page.offline) faults.push(`${name}: ${it.text()}`); });
  page.on("pageerror", (it) => faults.push(`${name}: ${it.message}`));
  page.on("request", (it) => { if (new URL(it.url()).host !== new URL(address).host) faults.push(`${name}: ${it.url()}`); });
  await page.goto(address);
  return page;
}

const browser = await puppeteer.launch({
  executablePath: wanted.chromium, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});
try {
  for (const [name, address] of Object.entries(wanted.pages)) {
    for (const width of [1280, 390]) {
      for (const dark of [false, true]) {
        const label = `${name}_${width}_${dark ? "dark" : "light"}`;
        const page = await opened(browser, label, address, width, dark);
        // Two refreshes: the second page comes from the script.
        await page.waitForFunction(() => { globalThis.firstHeading ??= document.querySelector("#head h1"); return !globalThis.firstHeading.isConnected; }, { timeout: 20000 });
        await page.$$eval("details", (all) => all.forEach((it) => { it.open = true; }));
        await checked(page, label);
        await page.close();
      }
    }
  }
  for (const [name, address] of Object.entries(wanted.files)) {
    for (const width of [1280, 390]) {
      for (const dark of [false, true]) {
        const label = `${name}_${width}_${dark ? "dark" : "light"}`;
        const page = await opened(browser, label, address, width, dark);
        await checked(page, label);
        await page.close();
      }
    }
  }
  const page = await opened(browser, "control", wanted.status, 1280, false);
  page.on("dialog", (it) => it.accept());
  const said = (text) => page.waitForFunction((text) => document.querySelector("output").textContent.includes(text), { timeout: 20000 }, text);
  const disabled = () => page.$$eval("#control button", (all) => all.filter((it) => it.disabled).map((it) => it.value).join(" "));
  await page.click("button[value=pause]");
  await said("Enter the token");
  await page.type("#token", wanted.token);
  await page.click("button[value=pause]");
  await said("paused");
  await page.waitForSelector("button[value=resume]:not(:disabled)", { timeout: 20000 });
  if (await disabled() !== "start pause") faults.push(`control: in state paused ${await disabled()} are disabled`);
  if (await page.$eval("#token", (it) => it.value) !== wanted.token) faults.push("control: the token was lost at a refresh");
  await page.click("button[value=resume]");
  await said("running");
  await page.waitForSelector("button[value=stop]:not(:disabled)", { timeout: 20000 });
  await page.click("button[value=stop]");
  await said("draining");
  await page.waitForSelector("button[value=start]:not(:disabled)", { timeout: 20000 });
  await page.type("#run", "4711");
  await page.click("button[value=start]");
  await said("accepts run 4711");
  await page.waitForSelector("table.log", { timeout: 20000 });
  await checked(page, "after_commands");
  await page.setViewport({ width: 390, height: 1000, deviceScaleFactor: 1 });
  await checked(page, "after_commands_390");
  await page.setViewport({ width: 1280, height: 1000, deviceScaleFactor: 1 });
  page.offline = true;
  await page.setOfflineMode(true);
  await page.waitForSelector("#stale:not([hidden])", { timeout: 20000 });
  await checked(page, "old");
  await page.setOfflineMode(false);
  await page.waitForSelector("#stale[hidden]", { timeout: 20000 });
} finally {
  await browser.close();
}
faults.forEach((line) => console.error(line));
console.log(faults.length ? `${faults.length} faults` : "no faults");
process.exit(faults.length ? 1 : 0);
