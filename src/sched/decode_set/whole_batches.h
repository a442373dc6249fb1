#pragma once

#include "sched/decode_set/decode_set_policy.h"

namespace skein {

// The decode set `static`: a batch runs until its last request has finished. Only then it returns
// its results and frees its slots.
class WholeBatches final : public DecodeSetPolicy {
 public:
  explicit WholeBatches(int32_t max_num_seqs) : max_num_seqs_(max_num_seqs) {}

  bool RunsWholeBatches() const override { return true; }
  bool MayJoin(int32_t num_samples) const override {
    return open_ && size_ + num_samples <= max_num_seqs_;
  }
  void OnAdmit(int32_t num_samples) override { size_ += num_samples; }
  void OnDecode() override { open_ = false; }
  void OnBatchEnd() override {
    open_ = true;
    size_ = 0;
  }

 private:
  const int32_t max_num_seqs_;
  bool open_ = true;  // before the first decode step
  int32_t size_ = 0;  // samples that have joined
};

}  // namespace skein
