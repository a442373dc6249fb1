#include "bench/quality/reliability_plot.h"

#include <fmt/format.h>

#include <algorithm>

namespace skein {
namespace {

// In pixels.
constexpr double kSide = 220;  // of a diagram
constexpr double kLeft = 52;
constexpr double kTop = 56;
constexpr double kPanelWidth = kLeft + kSide + 18;
constexpr double kHeight = kTop + kSide + 52;
constexpr double kBarsHeight = 40;  // height of the bar with the highest count
constexpr char kBefore[] = "#c0504d";
constexpr char kAfter[] = "#1f5fa8";

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return out;
}

std::string Line(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, style);
}

std::string Text(double x, double y, const char* style, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, Escaped(text));
}

// The bins as a line with points. The point (0, 0) of a diagram is at the pixel (0, kSide).
std::string Curve(const std::vector<ReliabilityBin>& bins, const char* color) {
  std::string points;
  std::string dots;
  for (const ReliabilityBin& bin : bins) {
    if (bin.count == 0) continue;
    const double x = bin.mean_confidence * kSide;
    const double y = (1 - bin.accuracy) * kSide;
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x, y, color);
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n",
                     points, color) +
         dots;
}

std::string Bars(const std::vector<ReliabilityBin>& bins) {
  int64_t most = 1;
  for (const ReliabilityBin& bin : bins) most = std::max(most, bin.count);
  const double width = kSide / kReliabilityBins;
  std::string out;
  for (size_t i = 0; i < bins.size(); ++i) {
    if (bins[i].count == 0) continue;
    const double x = static_cast<double>(i) * width;
    const double y =
        kSide - kBarsHeight * static_cast<double>(bins[i].count) / static_cast<double>(most);
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#d5deea\"/>\n",
        x + 1, y, width - 2, kSide - y);
    out += Text(x + width / 2, y - 3, "font-size=\"8\" fill=\"#666\" text-anchor=\"middle\"",
                std::to_string(bins[i].count));
  }
  return out;
}

std::string Axes() {
  std::string out = Line(0, kSide, kSide, kSide, "stroke=\"#333\"") +
                    Line(0, 0, 0, kSide, "stroke=\"#333\"") +
                    Line(0, kSide, kSide, 0, "stroke=\"#999\" stroke-dasharray=\"4 3\"");
  for (int tick = 0; tick <= 5; ++tick) {
    const double at = kSide * tick / 5;
    const std::string label = fmt::format("{:.1f}", tick / 5.0);
    out += Line(at, kSide, at, kSide + 4, "stroke=\"#333\"");
    out += Text(at, kSide + 16, "text-anchor=\"middle\"", label);
    out += Line(-4, kSide - at, 0, kSide - at, "stroke=\"#333\"");
    out += Text(-8, kSide - at + 4, "text-anchor=\"end\"", label);
  }
  out += Text(kSide / 2, kSide + 34, "text-anchor=\"middle\"", "confidence (bars: answers)");
  return out +
         Text(-kSide / 2, -36, "text-anchor=\"middle\" transform=\"rotate(-90)\"", "accuracy");
}

}  // namespace

std::string ReliabilitySvg(std::span<const ReliabilityPanel> panels) {
  const double width = kPanelWidth * std::max<double>(1, static_cast<double>(panels.size()));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, kHeight);
  out += Text(kLeft, 18, fmt::format("fill=\"{}\"", kBefore).c_str(), "before calibration");
  out += Text(kLeft + 120, 18, fmt::format("fill=\"{}\"", kAfter).c_str(), "after calibration");
  for (size_t i = 0; i < panels.size(); ++i) {
    out += fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n",
                       kLeft + kPanelWidth * static_cast<double>(i), kTop);
    out += Text(kSide / 2, -10, "text-anchor=\"middle\" font-weight=\"bold\"", panels[i].title);
    out += Bars(panels[i].after) + Axes() + Curve(panels[i].before, kBefore) +
           Curve(panels[i].after, kAfter) + "</g>\n";
  }
  return out + "</svg>\n";
}

}  // namespace skein
