"""The page at /, in a headless browser: it asks for a decision, shows the answers as bars, and its
charts follow /metrics. With SKEIN_SCREENSHOT=FILE it leaves a picture of the page there."""
import os
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from skein_server import SkeinServer


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1280,900", "--no-proxy-server"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = shutil.which("chromedriver")
    assert driver, "no chromedriver: run scripts/setup tests"
    with webdriver.Chrome(options, webdriver.ChromeService(driver)) as chrome:
        yield chrome


@pytest.fixture(scope="module")
def server(tiny_qwen3):
    with SkeinServer(tiny_qwen3) as running:
        yield running


def texts(browser, selector):
    return [element.text for element in browser.find_elements(By.CSS_SELECTOR, selector)]


def wait(browser, condition):
    WebDriverWait(browser, 20, poll_frequency=0.1).until(lambda _: condition())


def test_a_decision_is_shown_as_bars(browser, server):
    browser.get(server.url + "/")
    wait(browser, lambda: texts(browser, "#model option"))
    questions = [box.get_property("value")
                 for box in browser.find_elements(By.CSS_SELECTOR, ".question input[placeholder='The question']")]
    assert len(questions) == 3
    browser.find_element(By.CSS_SELECTOR, "button[type=submit]").click()
    wait(browser, lambda: len(texts(browser, ".answer")) == 3)
    assert texts(browser, ".answer h3") == questions
    options = texts(browser, ".answer:first-child .option span:first-child")
    assert options == ["positive", "neutral", "negative"]
    shares = [float(text.removesuffix(" %"))
              for text in texts(browser, ".answer:first-child .option span:last-child")]
    assert abs(sum(shares) - 100) < 0.2
    best = browser.find_elements(By.CSS_SELECTOR, ".answer .option.best")
    assert len(best) == 3
    fill = best[0].find_element(By.CSS_SELECTOR, ".fill")
    track = best[0].find_element(By.CSS_SELECTOR, ".track")
    assert abs(100 * fill.size["width"] / track.size["width"] - max(shares)) < 1.5
    assert "tokens read" in browser.find_element(By.ID, "cost").text


def test_a_refusal_is_shown(browser, server):
    browser.get(server.url + "/")
    wait(browser, lambda: texts(browser, "#model option"))
    box = browser.find_element(By.CSS_SELECTOR, "input[aria-label=Options]")
    browser.execute_script("arguments[0].value = 'only one'", box)
    browser.find_element(By.CSS_SELECTOR, "button[type=submit]").click()
    wait(browser, lambda: "choices" in browser.find_element(By.ID, "answers").text)
    assert browser.find_element(By.ID, "answers").get_attribute("class") == "error"


def test_charts_follow_the_metrics(browser, server):
    browser.get(server.url + "/")
    wait(browser, lambda: texts(browser, "#model option"))
    paths = "#charts svg path"
    wait(browser, lambda: all((p.get_attribute("d") or "").count("L") >= 1 for p in
                              browser.find_elements(By.CSS_SELECTOR, paths)[:2]))
    browser.find_element(By.CSS_SELECTOR, "button[type=submit]").click()
    wait(browser, lambda: len(texts(browser, ".answer")) == 3)
    # The next reading of the counters sees the decision: the second chart leaves zero.
    wait(browser, lambda: any(not text.endswith("top 0") for text in texts(browser, ".legend")[1:2]))
    # And the latencies have a point.
    wait(browser, lambda: any("h0" in (p.get_attribute("d") or "") for p in
                              browser.find_elements(By.CSS_SELECTOR, "svg[aria-label^=Latency] path")))
    picture = os.environ.get("SKEIN_SCREENSHOT")
    if picture:
        wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, paths)[0].get_attribute("d").count("L") > 5)
        height = browser.execute_script("return document.documentElement.scrollHeight")
        browser.set_window_size(1280, height + 140)
        browser.save_screenshot(picture)


def test_nothing_is_loaded_from_elsewhere(browser, server):
    browser.get_log("browser")
    browser.get(server.url + "/")
    wait(browser, lambda: texts(browser, "#model option"))
    resources = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert resources and all(name.startswith(server.url) for name in resources)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"
           ] == []
