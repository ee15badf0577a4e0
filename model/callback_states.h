// The states of the callbacks of a fit(), as a backup keeps them: texts in the checkpoint's
// metadata, and tensors in a file beside the checkpoint.
//
// That file is whole on disk before the checkpoint that names it is, so states and weights are of
// one moment whenever the program is killed. The next backup removes it once it is not needed.
//   Thread  one; calls may block.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "model/callback.h"

namespace cairn {

using Callbacks = std::vector<std::shared_ptr<Callback>>;

// The states of those that have one. Their tensors become a file in `folder`, named by `number`,
// which is another one for each backup; kNone: another process writes it.
enum class StateFile : std::uint8_t { kWritten, kNone };
//   Errors  InvalidArgument: a tensor of strings. Those of the disk.
Json save_states(const Callbacks& callbacks, const std::string& folder, std::int64_t number,
                 StateFile file);

// Gives them back to callbacks of the same kinds, in their order. One for which there is no state
// begins anew, and a state that no callback takes is left out; both are warnings in the log.
//   Input   `folder` has the file of tensors; `where` names what holds `saved`, for messages.
//   Result  the callbacks that took one.
//   Errors  DataLoss: the file is gone or damaged.
std::set<const Callback*> restore_states(const Json& saved, const std::string& folder,
                                         const std::string& where, const Callbacks& callbacks);

// Removes the files of all states in `folder` but that of `saved`.
void remove_other_state_files(const std::string& folder, const Json& saved);

}  // namespace cairn
