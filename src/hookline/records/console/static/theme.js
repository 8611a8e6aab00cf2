// Before anything is drawn: the theme that was chosen here last, else the system's.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("hookline-theme");
  } catch {
    // storage may be closed to pages from disk
  }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
