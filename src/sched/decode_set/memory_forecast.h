#pragma once

#include <span>

namespace skein {

// A request that decodes, in tokens of KV.
struct GrowingRequest {
  double left = 0;  // tokens that it will still add
  double own = 0;   // tokens that it alone holds now; its end frees them
};

// The most KV tokens that the requests will hold together from now on. Each request adds one token
// a step until its end, none joins, and `used` tokens are held now. Reorders the requests.
// O(requests x log(requests)).
double PeakTokens(double used, std::span<GrowingRequest> requests);

}  // namespace skein
