#include "sim/kv_reads.h"

#include <algorithm>

namespace skein {
namespace {

int64_t NumTokens(const PlanRow& row) { return row.begin + std::ssize(row.tokens); }

// The tokens in blocks that both rows read. The last block of a row may be partly filled.
int64_t SharedTokens(const PlanRow& a, const PlanRow& b) {
  const auto apart = std::ranges::mismatch(a.block_table, b.block_table);
  const int64_t num_blocks = apart.in1 - a.block_table.begin();
  return std::min({num_blocks * kBlockTokens, NumTokens(a), NumTokens(b)});
}

// A piece of the current row's tokens that ends at `end`. All rows from `first` on share it.
struct Open {
  int64_t end = 0;
  int64_t first = 0;
};

}  // namespace

KvReads CountKvReads(std::span<const PlanRow> decodes) {
  std::vector<const PlanRow*> rows;
  for (const PlanRow& row : decodes) rows.push_back(&row);
  std::ranges::sort(rows, [](const PlanRow* a, const PlanRow* b) {
    return std::ranges::lexicographical_compare(a->block_table, b->block_table);
  });
  KvReads reads;
  reads.num_rows = std::ssize(rows);
  std::vector<Open> open;  // the pieces of the previous row, by their ends
  for (int64_t i = 0; i <= std::ssize(rows); ++i) {
    const bool goes_on = i > 0 && i < std::ssize(rows);
    const int64_t shared = goes_on ? SharedTokens(*rows[i - 1], *rows[i]) : 0;
    int64_t first = i;
    while (!open.empty() && open.back().end > shared) {  // this piece ends with the previous row
      const Open piece = open.back();
      open.pop_back();
      const int64_t begin = std::max(shared, open.empty() ? 0 : open.back().end);
      reads.runs.push_back({static_cast<int32_t>(i - piece.first), piece.end - begin});
      reads.unique += piece.end - begin;
      first = piece.first;
    }
    if (i == std::ssize(rows)) break;
    // If a piece was cut, the row shares the beginning of it, too.
    if (shared > (open.empty() ? 0 : open.back().end)) open.push_back({shared, first});
    const int64_t length = NumTokens(*rows[i]);
    if (length > shared) open.push_back({length, i});
    reads.asked += length;
  }
  return reads;
}

std::span<const PlanRow> DecodesOf(const StepPlan& plan) {
  if (const auto* decode = std::get_if<DecodePlan>(&plan)) return decode->rows;
  if (const auto* mixed = std::get_if<MixedPlan>(&plan)) return mixed->decodes;
  return {};
}

void KvReadTotals::Add(const KvReads& reads) {
  if (reads.num_rows == 0) return;
  Add({.steps = 1, .rows = reads.num_rows, .asked = reads.asked, .unique = reads.unique});
}

void KvReadTotals::Add(const KvReadTotals& other) {
  steps += other.steps;
  rows += other.rows;
  asked += other.asked;
  unique += other.unique;
}

}  // namespace skein
