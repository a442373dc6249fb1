#pragma once

#include <span>

namespace skein {

// A request that decodes, in tokens of KV.
struct GrowingRequest {
  double left = 0;  // that it will still add
  double own = 0;   // that it holds alone now; it gives them back at its end
};

// The most KV tokens that the requests will hold together from now on, if each adds one token a
// step until its end, none joins, and `used` are held now. Reorders the requests.
// O(requests x log(requests)).
double PeakTokens(double used, std::span<GrowingRequest> requests);

}  // namespace skein
