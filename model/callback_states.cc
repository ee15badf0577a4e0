#include "model/callback_states.h"

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <typeinfo>
#include <utility>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/disk/disk.h"

namespace cairn {
namespace {

constexpr std::string_view kPrefix = "callbacks-", kSuffix = ".tensors";

// "cairn::EarlyStopping"
std::string kind_of(const Callback& callback) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(typeid(callback).name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : typeid(callback).name();
}

Json type_json(const Tensor& tensor) {
  return {{"dtype", std::string(dtype_name(tensor.dtype()))}, {"shape", tensor.shape().dims()}};
}

void append(std::string& bytes, const Tensor& tensor, const std::string& kind) {
  if (tensor.dtype() == DType::kString)
    throw InvalidArgumentError(str("the state of the callback ", kind,
                                   " has a tensor of strings: put them into its text"));
  if (tensor.bytes() > 0) bytes.append(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
}

// The tensors of all states, one behind the other.
class StateBytes {
 public:
  StateBytes(const Json& saved, const std::string& folder, const std::string& where) {
    if (!saved.contains("file")) return;
    path_ = folder + "/" + saved.at("file").get<std::string>();
    try {
      bytes_ = system_disk().read(path_);
    } catch (const NotFoundError&) {
      throw DataLossError(str(where, " wants the file ", path_,
                              ", in which callbacks keep tensors, and it is gone: put it back, or ",
                              "begin anew without ", where));
    }
    if (crc32c(bytes_) != saved.at("crc32c").get<std::uint32_t>()) fail();
  }
  Tensor next(const Json& type) {
    Tensor tensor(parse_dtype(type.at("dtype").get<std::string>()),
                  Shape(type.at("shape").get<std::vector<std::int64_t>>()));
    if (at_ + tensor.bytes() > bytes_.size()) fail();
    if (tensor.bytes() > 0) std::memcpy(tensor.mutable_raw(), bytes_.data() + at_, tensor.bytes());
    at_ += tensor.bytes();
    return tensor;
  }

 private:
  [[noreturn]] void fail() const {
    throw DataLossError(str("the file ", path_, ", in which callbacks keep tensors, is damaged: ",
                            "begin anew without the backup beside it"));
  }
  std::string path_, bytes_;
  std::size_t at_ = 0;
};

}  // namespace

Json save_states(const Callbacks& callbacks, const std::string& folder, std::int64_t number,
                 StateFile file) {
  Json states = Json::array();
  std::string bytes;
  for (const auto& callback : callbacks) {
    const std::optional<CallbackState> state = callback->state();
    if (!state) continue;
    const std::string kind = kind_of(*callback);
    Json tensors = Json::array();
    for (const Tensor& tensor : state->tensors) {
      append(bytes, tensor, kind);
      tensors.push_back(type_json(tensor));
    }
    states.push_back({{"callback", kind}, {"text", state->text}, {"tensors", std::move(tensors)}});
  }
  Json saved = {{"states", std::move(states)}};
  if (bytes.empty()) return saved;
  const std::string name = str(kPrefix, number, kSuffix);
  saved["file"] = name;
  saved["crc32c"] = crc32c(bytes);
  if (file == StateFile::kNone) return saved;
  system_disk().make_folder(folder);
  system_disk().write_atomically(folder + "/" + name, bytes);
  return saved;
}

std::set<const Callback*> restore_states(const Json& saved, const std::string& folder,
                                         const std::string& where, const Callbacks& callbacks) {
  std::multimap<std::string, CallbackState> states;  // by kind, each in the order of the callbacks
  if (saved.is_object()) {
    StateBytes bytes(saved, folder, where);
    for (const Json& one : saved.at("states")) {
      CallbackState state{one.at("text").get<std::string>(), {}};
      for (const Json& type : one.at("tensors")) state.tensors.push_back(bytes.next(type));
      states.emplace(one.at("callback").get<std::string>(), std::move(state));
    }
  }
  std::set<const Callback*> restored;
  for (const auto& callback : callbacks) {
    if (!callback->state()) continue;
    const std::string kind = kind_of(*callback);
    const auto found = states.lower_bound(kind);
    if (found == states.end() || found->first != kind) {
      log_warning(where, " has no state of the callback ", kind, ": it begins anew");
      continue;
    }
    callback->restore_state(found->second);
    restored.insert(callback.get());
    states.erase(found);
  }
  for (const auto& [kind, state] : states)
    log_warning(where, " has the state of a callback ", kind,
                " that this fit() does not have: it is left out");
  return restored;
}

void remove_other_state_files(const std::string& folder, const Json& saved) {
  const std::string kept = saved.value("file", "");
  for (const std::string& name : system_disk().list(folder))
    if (name != kept && name.starts_with(kPrefix) && name.ends_with(kSuffix))
      system_disk().remove(folder + "/" + name);
}

}  // namespace cairn
