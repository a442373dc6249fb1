#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "model/forward/product_cut.h"

namespace skein {

// The tickets of a grouped product: one product for each group (an expert of a mixture). The
// tickets of the groups follow one another, in the order of the groups.
class GroupedCut {
 public:
  explicit GroupedCut(int32_t num_groups) : cuts_(num_groups), ends_(num_groups) {}

  // Sets the cut of a group. A group without rows has an empty cut. REQUIRES: groups are set in
  // order, from 0.
  void Set(int32_t group, const ProductCut& cut) {
    cuts_[group] = cut;
    ends_[group] = (group > 0 ? ends_[group - 1] : 0) + cut.num_tickets();
  }
  int32_t num_tickets() const { return ends_.back(); }

  struct Ticket {
    int32_t group = 0;
    int32_t row = 0;  // the first row and column of the group's product
    int32_t col = 0;
    const ProductCut* cut = nullptr;
  };
  Ticket Find(int32_t ticket) const {
    const auto found = std::ranges::upper_bound(ends_, ticket);
    const auto group = static_cast<int32_t>(found - ends_.begin());
    const int32_t own = ticket - (group > 0 ? ends_[group - 1] : 0);
    const ProductCut& cut = cuts_[group];
    return {group, cut.row_begin(own), cut.col_begin(own), &cut};
  }

 private:
  std::vector<ProductCut> cuts_;  // [num_groups]
  std::vector<int32_t> ends_;     // [num_groups]: the tickets of all groups up to this one
};

}  // namespace skein
