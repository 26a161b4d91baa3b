// Light or dark: as the system has it, or as chosen here.
const KEY = "lifeline-theme";
const CHOICES = ["system", "light", "dark"];
const SIGNS = { system: "◐", light: "☀", dark: "☾" };

function stored() {
  try {
    const found = localStorage.getItem(KEY);
    return CHOICES.includes(found) ? found : "system";
  } catch {
    return "system"; // storage can be forbidden
  }
}

function apply(choice) {
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
}

apply(stored());

const button = document.getElementById("theme");

function show(choice) {
  button.textContent = SIGNS[choice];
  button.title = `Colours: ${choice}`;
  button.setAttribute("aria-label", `Colours: ${choice}`);
}

show(stored());
button.addEventListener("click", () => {
  const next = CHOICES[(CHOICES.indexOf(stored()) + 1) % CHOICES.length];
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // it then lasts as long as the page
  }
  apply(next);
  show(next);
});
