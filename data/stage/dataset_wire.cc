#include "data/stage/dataset_wire.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <algorithm>
#include <cstring>

#include "data/dataset/state.h"
#include "data/feature/hash.h"
#include "data/stage/pipeline_wire.h"

namespace cairn {
namespace {

// In front of the message: magic, version, and a checksum of the message, so that damage
// on the way is distinguished from a description that was wrong from the start.
constexpr char kMagic[8] = {'C', 'A', 'I', 'R', 'N', 'D', 'S', '\0'};
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 24;

std::vector<std::shared_ptr<const StageSpec>> stages_of(const Dataset& dataset) {
  dataset.element_spec();  // refuses an empty one
  return stages_of(dataset.last());
}

// Cap'n Proto wants aligned words, and the bytes may lie anywhere, so they are copied. The
// traversal limit bounds what a message whose pointers share targets can make its reader walk; the
// nesting limit bounds the stack.
Dataset read_pipeline(std::span<const std::byte> message) {
  std::vector<capnp::word> words(message.size() / sizeof(capnp::word));  // aligned
  if (!words.empty()) std::memcpy(words.data(), message.data(), words.size() * sizeof(capnp::word));
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 4 * words.size() + 1024;
  options.nestingLimit = 48;  // of datasets within datasets, too
  capnp::FlatArrayMessageReader reader(kj::ArrayPtr<const capnp::word>(words.data(), words.size()),
                                       options);
  return read_description(reader.getRoot<pipeline::Description>());
}

std::vector<std::byte> serialize_stages(
    const std::vector<std::shared_ptr<const StageSpec>>& specs) {
  capnp::MallocMessageBuilder message;
  write_description(message.initRoot<pipeline::Description>(), specs);
  auto words = capnp::messageToFlatArray(message);
  auto body = words.asBytes();
  std::size_t size = kHeaderBytes + body.size();
  if (size > kDatasetBytesMax)
    throw InvalidArgumentError(str("the description has ", size, " bytes, at most ",
                                   kDatasetBytesMax, " are possible; put large data into files"));
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data() + kHeaderBytes, body.begin(), body.size());
  std::uint64_t sum = checksum(std::span(bytes).subspan(kHeaderBytes));
  std::memcpy(bytes.data(), kMagic, 8);
  std::memcpy(bytes.data() + 8, &kVersion, 8);
  std::memcpy(bytes.data() + 16, &sum, 8);
  return bytes;
}

void refuse_code(const StageSpec& last) {
  if (std::holds_alternative<GeneratorSpec>(last.kind))
    throw FailedPreconditionError(
        "from_generator() is code of this program, and cannot be sent to another: write its "
        "elements to files, or train under a strategy without parameter servers and without "
        "workers of their own");
  if (const auto* service = std::get_if<ServiceSpec>(&last.kind)) refuse_code(*service->dataset);
  if (last.input) refuse_code(*last.input);
  for (const auto& other : last.others) refuse_code(*other);
}

// A copy of the description for the fingerprint, with digests in place of tensors.
std::shared_ptr<const StageSpec> what_counts(const std::shared_ptr<const StageSpec>& last) {
  auto made = std::make_shared<StageSpec>(*last);
  if (auto* tensors = std::get_if<TensorsSpec>(&made->kind)) {
    const std::vector<Tensor>& digests = digests_of(*tensors);
    for (std::size_t i = 0; i < digests.size(); ++i) tensors->columns[i].second = digests[i];
  }
  if (auto* service = std::get_if<ServiceSpec>(&made->kind))
    service->dataset = what_counts(service->dataset);
  if (made->input) made->input = what_counts(made->input);
  for (auto& other : made->others) other = what_counts(other);
  return made;
}

}  // namespace

std::vector<std::byte> serialize(const Dataset& dataset) {
  dataset.element_spec();  // refuses an empty one
  refuse_code(*dataset.last());
  return serialize_stages(stages_of(dataset));
}

Dataset parse_dataset(std::span<const std::byte> bytes) {
  if (bytes.size() > kDatasetBytesMax)
    throw InvalidArgumentError(
        str("a dataset of ", bytes.size(), " bytes, at most ", kDatasetBytesMax, " are possible"));
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, 8) != 0)
    throw InvalidArgumentError("these bytes are not a dataset");
  std::uint64_t version, sum;
  std::memcpy(&version, bytes.data() + 8, 8);
  std::memcpy(&sum, bytes.data() + 16, 8);
  if (version != kVersion)
    throw InvalidArgumentError(
        str("a dataset of version ", version, ", this program knows version ", kVersion));
  std::span<const std::byte> message = bytes.subspan(kHeaderBytes);
  if (message.size() % sizeof(capnp::word) != 0 || sum != checksum(message))
    throw InvalidArgumentError("the dataset was damaged on its way: its checksum does not fit");
  try {
    return read_pipeline(message);
  } catch (const kj::Exception& error) {
    throw InvalidArgumentError(str("a malformed dataset: ", error.getDescription().cStr()));
  }
}

std::uint64_t fingerprint(const Dataset& dataset) {
  dataset.element_spec();  // refuses an empty one
  return checksum(serialize_stages(stages_of(what_counts(dataset.last()))));
}

// The fingerprint is the second number of a state, behind its version (data/stage/open.cc).
bool is_state_of(const Dataset& dataset, std::span<const std::byte> state) {
  try {
    StateReader in(state);
    in.number();
    return in.number() == fingerprint(dataset);
  } catch (const InvalidArgumentError&) {
    return true;
  }
}

}  // namespace cairn
