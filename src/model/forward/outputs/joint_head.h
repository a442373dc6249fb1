#pragma once

#include "model/forward/pass_state.h"
#include "model/forward/program.h"

namespace skein {

// Adds the operators of a joint head (model/weights/joint_head_weights.h), which compute the logits
// of all options of a row. They read the states of all tokens of the row. Each chunk of outputs has
// one row, so no bit of a row depends on the others. `pass` outlives the list.
void AddJointHead(PassState& pass, OperatorList& list);

}  // namespace skein
