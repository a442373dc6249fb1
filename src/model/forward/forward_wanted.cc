// The end of ForwardPass's last layer. When its keys and values are stored nobody reads what it
// makes of most tokens: attention, its output's product and the MLP go over the tokens alone that
// an output is read of. Their rows of q and x are moved to the first places, in order; each keeps
// its own position, sequence and block table, so no bit of it differs.

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "model/forward/forward_pass.h"

namespace skein {
namespace {

constexpr size_t kGatherBytes = size_t{1} << 20;  // of a ticket

}  // namespace

void ForwardPass::FindWanted() {
  wanted_.assign(batch_.logit_tokens.begin(), batch_.logit_tokens.end());
  for (const LabelOutput& output : batch_.label_outputs) wanted_.push_back(output.token);
  for (const int32_t r : batch_.classified_rows) wanted_.push_back(ClassifiedToken(r));
  for (const int32_t r : batch_.embedded_rows) {
    const ForwardRow& row = batch_.rows[r];
    const bool all = context_.pooling == Pooling::kMean;
    const int32_t first = all ? row.first_token : EmbeddedToken(r);
    for (int32_t i = 0; i < (all ? row.num_tokens : 1); ++i) wanted_.push_back(first + i);
  }
  std::ranges::sort(wanted_);
  const auto surplus = std::ranges::unique(wanted_);
  wanted_.erase(surplus.begin(), surplus.end());
  if (wanted_.empty()) return;
  SKEIN_CHECK(wanted_.front() >= 0 && wanted_.back() < batch_.num_tokens());
}

// Behind the last layer's kFork: from here on the wanted tokens go on alone. Without any the pass
// is at its end.
void ForwardPass::KeepWanted() {
  if (num_places() == std::ssize(wanted_)) return;
  only_wanted_ = true;
  if (wanted_.empty()) {
    cursor_ = {.layer = 0, .op = Operator::kFinalNorm};
  } else {
    CutTiles();
  }
}

int32_t ForwardPass::PlaceOf(int32_t token) const {
  if (!only_wanted_) return token;
  return static_cast<int32_t>(std::ranges::lower_bound(wanted_, token) - wanted_.begin());
}

// Each ticket moves some columns of all rows, from the first on: a row that is written has been
// read before, and no two tickets meet. None where all that go on lie in their places.
int32_t ForwardPass::NumGatherTickets() const {
  if (!only_wanted_ || wanted_.back() == num_places() - 1) return 0;
  const size_t bytes = wanted_.size() * (config().hidden_size * sizeof(float) + q_width() * t_);
  const auto wide = static_cast<int32_t>((bytes + kGatherBytes - 1) / kGatherBytes);
  return std::min(wide, CeilDiv(q_width(), kRowPiece));
}

void ForwardPass::GatherWanted(int32_t ticket) {
  const int32_t num_tickets = NumGatherTickets();
  // Where this ticket and the next begin, of n things that are shared out.
  const auto begin_of = [&](int64_t n) { return static_cast<int32_t>(n * ticket / num_tickets); };
  const auto end_of = [&](int64_t n) {
    return static_cast<int32_t>(n * (ticket + 1) / num_tickets);
  };
  const int64_t hidden = config().hidden_size;
  const int32_t x_begin = begin_of(hidden), x_end = end_of(hidden);
  const int32_t num_pieces = CeilDiv(q_width(), kRowPiece);
  const int32_t q_begin = begin_of(num_pieces) * kRowPiece;
  const int32_t q_end = std::min(end_of(num_pieces) * kRowPiece, q_width());
  for (int32_t place = 0; place < num_places(); ++place) {
    const int32_t token = wanted_[place];
    if (token == place) continue;
    std::copy_n(workspace_.x + token * hidden + x_begin, x_end - x_begin,
                workspace_.x + place * hidden + x_begin);
    for (int32_t column = q_begin; column < q_end; column += kRowPiece) {
      std::memcpy(At(workspace_.q, place, column, q_width()),
                  At(workspace_.q, token, column, q_width()),
                  std::min(kRowPiece, q_end - column) * t_);
    }
  }
}

}  // namespace skein
