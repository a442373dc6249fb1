#include "bench/quality/reliability_plot.h"

#include <gtest/gtest.h>

#include <regex>

namespace skein {
namespace {

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Expects that every tag is closed, in order.
void ExpectWellFormed(const std::string& svg) {
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z]+)([^<>]*)>");
  for (std::sregex_iterator it(svg.begin(), svg.end(), tag), end; it != end; ++it) {
    const std::string rest = (*it)[3];
    EXPECT_EQ(Count(rest, "\"") % 2, 0u) << it->str();
    if ((*it)[1].length() > 0) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), (*it)[2].str());
      open.pop_back();
    } else if (rest.empty() || rest.back() != '/') {
      open.push_back((*it)[2]);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(ReliabilityPlotTest, DrawsBinsThatHoldSomething) {
  std::vector<ReliabilityBin> bins(kReliabilityBins);
  bins[5] = {10, 0.55, 0.5};
  bins[9] = {30, 0.95, 0.8};
  const std::vector<ReliabilityPanel> panels = {{"choice: a < b & c", bins, bins},
                                                {"score", bins, bins}};
  const std::string svg = ReliabilitySvg(panels);
  ExpectWellFormed(svg);
  EXPECT_EQ(Count(svg, "<circle"), 8u);
  EXPECT_EQ(Count(svg, "<rect"), 5u);
  EXPECT_EQ(Count(svg, "stroke-dasharray"), 2u);
  EXPECT_NE(svg.find("choice: a &lt; b &amp; c"), std::string::npos);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  ExpectWellFormed(ReliabilitySvg({}));
}

}  // namespace
}  // namespace skein
