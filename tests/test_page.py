"""The page at /, in a headless browser as wide as a desk's and as narrow as a phone's: it asks for a
decision and shows the answers as bars, chats, draws charts from /metrics and shows the scheduler. With
SKEIN_SCREENSHOTS=DIR it leaves pictures of the page there."""
import base64
import os
import pathlib
import shutil
import threading

import openai
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from skein_server import SkeinServer

WIDTHS = {"desk": 1280, "phone": 390}


def open_browser(width):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--no-proxy-server", "--hide-scrollbars"):
        options.add_argument(argument)
    # A window is never as narrow as a phone: the viewport is.
    options.add_experimental_option("mobileEmulation", {
        "deviceMetrics": {"width": width, "height": 844, "pixelRatio": 2, "mobile": width < 600}})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = shutil.which("chromedriver")
    assert driver, "no chromedriver: run scripts/setup tests"
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


@pytest.fixture(scope="module")
def browser():
    with open_browser(WIDTHS["desk"]) as chrome:
        yield chrome


@pytest.fixture(scope="module")
def phone():
    with open_browser(WIDTHS["phone"]) as chrome:
        yield chrome


@pytest.fixture(scope="module")
def server(tiny_qwen3):
    with SkeinServer(tiny_qwen3, "--max-num-seqs", 2) as running:
        yield running


def texts(browser, selector):
    # In one step: the page may replace an element at any time.
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(element => element.innerText.trim())", selector)


def wait(browser, condition):
    WebDriverWait(browser, 20, poll_frequency=0.1).until(lambda _: condition())


def open_page(browser, server):
    browser.get(server.url + "/")
    wait(browser, lambda: texts(browser, "#model option"))


def press(browser, selector):
    browser.find_element(By.CSS_SELECTOR, selector).click()


def picture(browser, name):
    folder = os.environ.get("SKEIN_SCREENSHOTS")
    if not folder:
        return
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    (pathlib.Path(folder) / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


def test_a_decision_is_shown_as_bars(browser, server):
    open_page(browser, server)
    questions = [box.get_property("value")
                 for box in browser.find_elements(By.CSS_SELECTOR, ".question textarea[placeholder='The question']")]
    assert len(questions) == 3
    press(browser, "#decide button[type=submit]")
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
    open_page(browser, server)
    box = browser.find_element(By.CSS_SELECTOR, "textarea[aria-label=Options]")
    browser.execute_script("arguments[0].value = 'only one'", box)
    press(browser, "#decide button[type=submit]")
    wait(browser, lambda: "choices" in browser.find_element(By.ID, "answers").text)
    assert browser.find_element(By.ID, "answers").get_attribute("class") == "error"


def test_charts_follow_the_metrics(browser, server):
    open_page(browser, server)
    paths = "#charts svg path"
    wait(browser, lambda: all((p.get_attribute("d") or "").count("L") >= 1 for p in
                              browser.find_elements(By.CSS_SELECTOR, paths)[:2]))
    press(browser, "#decide button[type=submit]")
    wait(browser, lambda: len(texts(browser, ".answer")) == 3)

    def legends():
        return texts(browser, "#charts .legend")

    # The next reading of the counters sees the decision: the second chart leaves zero.
    wait(browser, lambda: legends()[1].startswith("one pass") and not legends()[1].startswith("one pass 0"))
    # And the latencies have a point.
    wait(browser, lambda: any("h0" in (p.get_attribute("d") or "") for p in
                              browser.find_elements(By.CSS_SELECTOR, "svg[aria-label^=Latency] path")))
    # Each chart has a zero line and an axis, whose numbers go from zero to a round one, and the time below.
    for plot in browser.find_elements(By.CSS_SELECTOR, ".plot"):
        assert len(plot.find_elements(By.CSS_SELECTOR, "line.axis")) == 2
        top, middle, zero = (label.text for label in plot.find_elements(By.CSS_SELECTOR, ".ys span"))
        assert zero == "0" and top.removesuffix("k").replace("0", "").replace(".", "") in ("1", "2", "5")
        assert plot.find_element(By.CSS_SELECTOR, ".xs").text.split("\n")[-1] == "now"
    picture(browser, "desk-load")


@pytest.mark.parametrize("place", WIDTHS)
def test_a_chat(browser, phone, server, place):
    page = {"desk": browser, "phone": phone}[place]
    open_page(page, server)
    press(page, "#tab-chat")
    tokens = page.find_element(By.ID, "tokens")
    tokens.clear()
    tokens.send_keys("24")
    press(page, "#chat button[type=submit]")
    wait(page, lambda: "tokens" in page.find_element(By.ID, "pace").text)
    user, answer = page.find_elements(By.CSS_SELECTOR, ".message")
    assert "birds" in user.text and answer.text
    assert "24 tokens" in page.find_element(By.ID, "pace").text
    page.find_element(By.ID, "message").send_keys("And one more?\n")
    wait(page, lambda: len(page.find_elements(By.CSS_SELECTOR, ".message")) == 4
         and "tokens" in page.find_element(By.ID, "pace").text)
    picture(page, f"{place}-chat")
    # A refusal takes the message back into its box.
    page.execute_script("chat.noValidate = true; temperature.value = 9")
    page.find_element(By.ID, "message").send_keys("Again\n")
    wait(page, lambda: "temperature" in page.find_element(By.ID, "refusal").text)
    assert page.find_element(By.ID, "message").get_property("value") == "Again"
    assert len(page.find_elements(By.CSS_SELECTOR, ".message")) == 4
    press(page, "#reset")
    assert page.find_elements(By.CSS_SELECTOR, ".message") == []


def test_thoughts_stand_before_the_answer(browser, stories, tmp_path):
    template = tmp_path / "template.jinja"
    template.write_text("{% for m in messages %}{{ m.content }}{% endfor %}<think>")
    with SkeinServer(stories, "--chat-template", template) as thinker:
        open_page(browser, thinker)
        press(browser, "#tab-chat")
        tokens = browser.find_element(By.ID, "tokens")
        tokens.clear()
        tokens.send_keys("24")
        press(browser, "#chat button[type=submit]")
        wait(browser, lambda: "24 tokens" in browser.find_element(By.ID, "pace").text)
        user, thought, answer = browser.find_elements(By.CSS_SELECTOR, ".message")
        assert "thought" in thought.get_property("className") and thought.text
        assert not answer.text


@pytest.mark.parametrize("place", WIDTHS)
def test_the_scheduler_is_shown(browser, phone, server, place):
    page = {"desk": browser, "phone": phone}[place]
    open_page(page, server)
    press(page, "#tab-scheduler")
    wait(page, lambda: texts(page, "#requests h3") == ["Running: 0", "Suspended: 0", "Waiting: 0"])
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0, timeout=120)
    prompt = " ".join(f"word {i}" for i in range(100))

    shown = threading.Event()

    def write(number):
        with client.completions.create(model="tiny", prompt=f"{prompt} {number}", max_tokens=4000, stream=True,
                                       extra_body={"ignore_eos": True}) as stream:
            for _ in stream:
                if shown.is_set():
                    return

    writers = [threading.Thread(target=write, args=(i,), daemon=True) for i in range(4)]
    for writer in writers:
        writer.start()
    # Two decode at once, the others wait for a slot.
    wait(page, lambda: texts(page, "#requests h3") == ["Running: 2", "Suspended: 0", "Waiting: 2"])
    assert len(page.find_elements(By.CSS_SELECTOR, ".request")) == 4
    # Their common beginning is one run of the tree, and two sequences use it.
    wait(page, lambda: any("2 sequences" in text for text in texts(page, ".prefix")))
    picture(page, f"{place}-scheduler")
    shown.set()
    for writer in writers:
        writer.join(100)
    wait(page, lambda: texts(page, "#requests h3") == ["Running: 0", "Suspended: 0", "Waiting: 0"])


def test_a_phone_shows_all_of_the_page(phone, server):
    """Nothing is wider than the screen, long questions and options wrap, and no field is so small that a
    phone zooms in on it."""
    open_page(phone, server)
    long = "Does the writer of this text, who says that the package arrived two weeks late, ask for a refund? " * 2
    question = phone.find_element(By.CSS_SELECTOR, ".question textarea[aria-label=Question]")
    question.clear()
    question.send_keys(long)
    options = phone.find_element(By.CSS_SELECTOR, "textarea[aria-label=Options]")
    options.clear()
    options.send_keys("yes and with good reason, no not in any way, " + "averyveryverylongwordwithoutanyspace" * 3)
    for field in (question, options):
        assert field.get_property("scrollHeight") <= field.get_property("clientHeight") + 2
        assert field.size["height"] > 60
    press(phone, "#decide button[type=submit]")
    wait(phone, lambda: len(texts(phone, ".answer")) == 3)
    picture(phone, "phone-decide")
    for tab in ("#tab-decide", "#tab-chat", "#tab-load", "#tab-scheduler"):
        press(phone, tab)
        widths = phone.execute_script(
            "return [document.documentElement.scrollWidth, innerWidth, "
            "Math.max(...[...document.querySelectorAll('main *')].map(e => e.getBoundingClientRect().right))]")
        assert widths[0] <= widths[1] == WIDTHS["phone"] and widths[2] <= widths[1] + 0.5, (tab, widths)
        sizes = phone.execute_script(
            "return [...document.querySelectorAll('input, textarea, select')].map(e => parseFloat(getComputedStyle(e).fontSize))")
        assert sizes and min(sizes) >= 16


def test_the_key_is_asked_for_where_one_is_needed(browser, server, tiny_qwen3):
    open_page(browser, server)
    assert not browser.find_element(By.ID, "key").is_displayed()
    with SkeinServer(tiny_qwen3, "--api-key", "secret") as guarded:
        browser.get(guarded.url + "/")
        wait(browser, lambda: browser.find_element(By.ID, "key").is_displayed())
        browser.find_element(By.ID, "key").send_keys("secret\n")
        wait(browser, lambda: texts(browser, "#model option"))
        wait(browser, lambda: not browser.find_element(By.ID, "key").is_displayed())
        press(browser, "#decide button[type=submit]")
        wait(browser, lambda: len(texts(browser, ".answer")) == 3)


def test_nothing_is_loaded_from_elsewhere(browser, server):
    browser.get_log("browser")
    open_page(browser, server)
    resources = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert resources and all(name.startswith(server.url) for name in resources)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"
           ] == []
