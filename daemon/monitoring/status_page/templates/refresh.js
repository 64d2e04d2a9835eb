"use strict";
// Replaces the live parts of the page by the newest ones while the page is visible, and shows how old the data are if
// they are. Without the script, the browser reloads the page.
const SECONDS = 2, ANSWER_SECONDS = 4, LATE_SECONDS = 7;
const FOCUSABLE = "a[href], summary, button, input, [tabindex]";
const refreshed = [];
let answered = Date.now(), asking = false, reason = "";

function replaceLive(fresh) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    if (!next) throw new Error("the answer is another page");
    const scrolled = [...part.querySelectorAll(".scroll, .wide")].map((it) => [it.scrollLeft, it.scrollTop]);
    const open = new Map([...part.querySelectorAll("details")].map((it) => [it.dataset.key, it.open]));
    const focus = [...part.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
    part.replaceChildren(...next.childNodes);
    part.querySelectorAll("details").forEach((it) => { it.open = open.get(it.dataset.key) ?? it.open; });
    part.querySelectorAll(".scroll, .wide").forEach((it, i) => { [it.scrollLeft, it.scrollTop] = scrolled[i] ?? [0, 0]; });
    if (focus >= 0) part.querySelectorAll(FOCUSABLE)[focus]?.focus({ preventScroll: true });
  }
  document.title = fresh.title;
  refreshed.forEach((call) => call());
}

async function refresh() {
  if (asking) return;
  asking = true;
  try {
    const answer = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(ANSWER_SECONDS * 1000) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    replaceLive(new DOMParser().parseFromString(await answer.text(), "text/html"));
    answered = Date.now();
    reason = "";
  } catch (error) {
    reason = error instanceof TypeError || error.name === "TimeoutError" ? "the node does not answer" : error.message;
  } finally {
    asking = false;
  }
  showAge();
}

function showAge() {
  const age = Math.round((Date.now() - answered) / 1000), old = age >= LATE_SECONDS;
  const sign = document.getElementById("stale");
  const text = `These data are ${age < 120 ? `${age} s` : `${Math.round(age / 60)} min`} old${reason && ": "}${reason}`;
  // Screen readers announce each change: one every ten seconds is enough.
  if (old && (sign.hidden || age % 10 < SECONDS)) sign.textContent = text;
  sign.hidden = !old;
  document.body.classList.toggle("old", old);
  if (old && !document.title.startsWith("(old) ")) document.title = `(old) ${document.title}`;
}

setInterval(() => {
  if (document.hidden) return;
  if (getSelection().isCollapsed) refresh();
  else reason = "it waits while text is selected";
  showAge();
}, SECONDS * 1000);
document.addEventListener("visibilitychange", () => { if (!document.hidden) { showAge(); refresh(); } });
