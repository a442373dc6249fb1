#include "cuda/executor/pass_rank.h"

#include <cstdint>

#include "base/ceil_div.h"
#include "cuda/executor/operators/operator_slices.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

// Every device waits until all others have run the commands that they have.
void Meet(const PassRanks& ranks) {
  std::vector<int64_t> marks;
  for (const auto& rank : ranks) marks.push_back(rank->context.device->Mark());
  for (const auto& rank : ranks) {
    for (size_t peer = 0; peer < ranks.size(); ++peer) {
      Device& other = *ranks[peer]->context.device;
      if (&other != rank->context.device) rank->context.device->WaitForPeer(other, marks[peer]);
    }
  }
}

// Writes the rank's columns to all others. Returns the bytes that each of them gets.
int64_t Write(const PassRanks& ranks, const PassRank& from, int op, const ChunkRows& rows) {
  const SharedMatrix matrix = from.layers.SharedBehind(op, rows);
  const ColumnRange columns = ColumnsOf(from.context.rank, matrix.columns);
  const auto size = static_cast<int64_t>(SizeOf(matrix.dtype));
  const auto place = [&](const PassRank& rank) {
    std::byte* const data = rank.layers.SharedBehind(op, rows).data;
    return reinterpret_cast<uint32_t*>(data) + columns.begin * size / 4;
  };
  ShareColumnsArgs args = {.from = place(from),
                           .num_rows = matrix.num_rows,
                           .stride = matrix.width * size / 4,
                           .words = static_cast<int32_t>(CeilDiv(columns.size() * size, 4))};
  for (const auto& rank : ranks) {
    if (rank.get() != &from) args.to[args.num_peers++] = place(*rank);
  }
  from.context.device->Run(ShareColumnsLaunch(args));
  return int64_t{4} * args.num_rows * args.words;
}

}  // namespace

Result<std::unique_ptr<PassRank>> PassRank::Make(const CudaContext& context,
                                                 const ForwardLimits& limits,
                                                 int32_t carried_state) {
  std::unique_ptr<PassRank> rank(
      new PassRank{.context = context,
                   .limits = LimitsOnDevice(context.model.weights->config, limits),
                   .carried_state = carried_state});
  SKEIN_ASSIGN_OR_RETURN(rank->memory, Activations::Make(context, rank->limits));
  return rank;
}

void WaitForLead(const PassRanks& ranks) {
  if (ranks.size() == 1) return;
  Device& lead = *ranks.front()->context.device;
  const int64_t mark = lead.Mark();
  for (size_t i = 1; i < ranks.size(); ++i) ranks[i]->context.device->WaitForPeer(lead, mark);
}

void LetLeadWait(const PassRanks& ranks) {
  Device& lead = *ranks.front()->context.device;
  for (size_t i = 1; i < ranks.size(); ++i) {
    Device& peer = *ranks[i]->context.device;
    lead.WaitForPeer(peer, peer.Mark());
  }
}

double ShareBehind(const PassRanks& ranks, int op, const ChunkRows& rows) {
  if (ranks.size() == 1) return 0;
  int64_t bytes = 0;
  if (ranks.front()->layers.SharedBehind(op, rows).data != nullptr) {
    for (const auto& rank : ranks) bytes = Write(ranks, *rank, op, rows);
  } else if (!ranks.front()->layers.MeetsBehind(op, rows)) {
    return 0;
  }
  Meet(ranks);
  return OperatorSlices::LinkUs(static_cast<double>(bytes) * static_cast<double>(ranks.size() - 1));
}

}  // namespace skein::cuda
