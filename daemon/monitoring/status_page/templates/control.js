// Commands of the operator. The token stays in the memory of the page: no cookie, no storage.
const control = document.getElementById("control");
if (control) {
  const token = control.querySelector("#token"), run = control.querySelector("#run"), said = control.querySelector("output");
  const buttons = [...control.querySelectorAll("button")];
  let sending = false;
  const allow = () => {
    const legal = document.getElementById("legal").dataset.legal.split(" ");
    for (const button of buttons) button.disabled = sending || !legal.includes(button.value);
  };
  async function send(name) {
    if (name === "stop" && !confirm("Stop the run? The node drains and finishes its files.")) return;
    if (!token.value) { said.textContent = "Enter the token first."; token.focus(); return; }
    sending = true;
    allow();
    said.textContent = `${name} …`;
    try {
      const answer = await fetch(`control/${name}`, {
        method: "POST", credentials: "omit", redirect: "error", cache: "no-store", signal: AbortSignal.timeout(10000),
        headers: { Authorization: `Bearer ${token.value.trim()}` },
        body: name === "start" && run.value ? JSON.stringify({ run: Number(run.value) }) : "",
      });
      const content = await answer.json();
      const time = new Date().toISOString().slice(11, 19);
      said.textContent = answer.ok ? `${time} UTC ${name}: ${content.state}, ${content.text}`
        : `${time} UTC ${name} refused: ${content.text ?? content.error}`;
      said.className = answer.ok ? "" : "error";
    } catch (error) {
      said.textContent = `${name}: no answer (${error.message}). Check the state of the node before you repeat it.`;
      said.className = "error";
    } finally {
      sending = false;
      allow();
      refresh();
    }
  }
  for (const button of buttons) button.addEventListener("click", () => send(button.value));
  refreshed.push(allow);
  control.hidden = false;
  allow();
}
