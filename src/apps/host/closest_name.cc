#include "apps/host/closest_name.h"

#include <algorithm>
#include <vector>

namespace skein {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  // Rows of the usual table: distances of the first i letters of `a` to each beginning of `b`.
  std::vector<size_t> two_before(b.size() + 1), before(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    two_before.swap(before);
    before.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = before[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string DidYouMean(std::string_view given, std::span<const std::string> names) {
  std::string_view nearest;
  size_t least = std::max<size_t>(1, given.size() / 3) + 1;
  for (const std::string& name : names) {
    const size_t distance = EditDistance(given, name);
    if (distance >= least || distance == given.size()) continue;
    least = distance;
    nearest = name;
  }
  return nearest.empty() ? std::string() : "; did you mean '" + std::string(nearest) + "'?";
}

}  // namespace skein
