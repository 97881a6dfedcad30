"""The pictures of the report in the documentation: python scripts/screenshots.py (needs the extra 'browser')."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from oversafe import audit
from oversafe.data import load_dataset
from oversafe.protect import SMOTE

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SCREENS = {"desktop": (1120, 1360, "light"), "phone": (390, 844, "light"), "dark": (1120, 1360, "dark")}
COLOURS = 240


def write_report(path: Path) -> None:
    """Write the report of a SMOTE release of the embedded medical table."""
    X, y = load_dataset("breast_cancer")
    X_held, y_held = load_dataset("breast_cancer_holdout")
    sampler = SMOTE(random_state=0)
    X_new, y_new = sampler.fit_resample(X, y)
    audit(
        X_new.assign(diagnosis=y_new),
        "diagnosis",
        real=X.assign(diagnosis=y),
        holdout=X_held.assign(diagnosis=y_held),
        guarantee=sampler.guarantee_,
        name="smote_release.csv",
    ).to_html(path)


def shrink(path: Path, width: int | None = None) -> None:
    """Store a picture with few colours: the pages have flat ones."""
    with Image.open(path) as picture:
        if width is not None and picture.width > width:
            picture = picture.resize(
                (width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS
            )
        picture.convert("RGB").quantize(
            COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
        ).save(path, optimize=True)


def main() -> None:
    """Take the pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = Path(folder) / "report.html"
        write_report(report)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), chromium_sandbox=False, args=["--disable-gpu"]
        )
        for name, (width, height, scheme) in SCREENS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(report.as_uri())
            page.screenshot(path=IMAGES / f"report-{name}.png")
            shrink(IMAGES / f"report-{name}.png")
        page = browser.new_page()
        page.goto(report.as_uri())
        page.pdf(path=f"{folder}/report.pdf", format="A4")
        browser.close()
        subprocess.run(
            ["pdftoppm", "-r", "80", "-png", "-f", "1", "-l", "3", f"{folder}/report.pdf", f"{folder}/sheet"],
            check=True,
        )
        sheets = [Image.open(sheet) for sheet in sorted(Path(folder).glob("sheet*.png"))]
        width, height = sheets[0].size
        together = Image.new("RGB", (len(sheets) * (width + 12) - 12, height), "#8a929c")
        for number, sheet in enumerate(sheets):
            together.paste(sheet, (number * (width + 12), 0))
        together.save(IMAGES / "report-print.png")
        shrink(IMAGES / "report-print.png", 1500)


if __name__ == "__main__":
    main()
