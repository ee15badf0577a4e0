#include <cstring>

#include "arrow.h"
#include "core/base/error.h"

namespace cairn::python {
namespace {

constexpr const char* kStreamCapsule = "arrow_array_stream";

[[noreturn]] void damaged(const std::string& what) {
  throw InvalidArgumentError(str("the Arrow stream of this table is damaged: ", what));
}

// A stream is moved out of its capsule, as the specification says: what stays there is released.
Arrow<ArrowArrayStream> stream_of(nb::handle table) {
  const nb::object capsule = table.attr("__arrow_c_stream__")();
  if (PyCapsule_IsValid(capsule.ptr(), kStreamCapsule) == 0)
    throw nb::type_error(
        "__arrow_c_stream__() of this table gives no capsule \"arrow_array_stream\"");
  auto* stream =
      static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), kStreamCapsule));
  if (stream == nullptr) nb::raise_python_error();
  if (stream->release == nullptr) damaged("it has been read or released before");
  if (stream->get_schema == nullptr || stream->get_next == nullptr) damaged("it lacks a function");
  return Arrow<ArrowArrayStream>(stream);
}

void check(int code, Arrow<ArrowArrayStream>& stream) {
  if (code == 0) return;
  const char* why =
      stream->get_last_error == nullptr ? nullptr : stream->get_last_error(stream.get());
  throw InvalidArgumentError(
      str("the table could not be read: ", why != nullptr ? why : std::strerror(code)));
}

constexpr int kDepthMax = 8;

void verify(const ArrowSchema& schema, int depth) {
  if (schema.release == nullptr && depth == 0) damaged("its schema has been released");
  if (schema.format == nullptr) damaged("a type has no name");
  if (depth > kDepthMax) damaged(str("types nested more than ", kDepthMax, " deep"));
  if (schema.n_children < 0 || (schema.n_children > 0 && schema.children == nullptr))
    damaged("a type lacks its children");
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    if (schema.children[i] == nullptr) damaged("a type lacks a child");
    verify(*schema.children[i], depth + 1);
  }
  if (schema.dictionary != nullptr) verify(*schema.dictionary, depth + 1);
}

// Sizes of buffers are not told: what can be seen is that places and children are there.
void verify(const ArrowArray& array, const ArrowSchema& schema) {
  if (array.length < 0 || array.offset < 0) damaged("a length or an offset below 0");
  if (array.length > INT64_MAX / 64 - array.offset) damaged("a length beyond all memory");
  if (array.n_buffers < 0 || (array.n_buffers > 0 && array.buffers == nullptr))
    damaged("an array lacks its buffers");
  if (array.n_children != schema.n_children ||
      (array.n_children > 0 && array.children == nullptr) ||
      (array.dictionary == nullptr) != (schema.dictionary == nullptr))
    damaged("an array does not fit its type");
  for (std::int64_t i = 0; i < array.n_children; ++i) {
    if (array.children[i] == nullptr) damaged("an array lacks a child");
    verify(*array.children[i], *schema.children[i]);
  }
  if (array.dictionary != nullptr) verify(*array.dictionary, *schema.dictionary);
}

}  // namespace

std::unique_ptr<ArrowBatches> read_arrow_stream(nb::handle table) {
  Arrow<ArrowArrayStream> stream = stream_of(table);
  auto made = std::make_unique<ArrowBatches>();
  // The producer's threads may need the GIL for what they compute.
  released([&] {
    Arrow<ArrowArrayStream> reading = std::move(stream);
    // A call that fails leaves nothing behind that must be released.
    ArrowSchema schema{};
    check(reading->get_schema(reading.get(), &schema), reading);
    made->schema = Arrow<ArrowSchema>(&schema);
    verify(*made->schema, 0);
    for (;;) {
      ArrowArray next{};
      check(reading->get_next(reading.get(), &next), reading);
      Arrow<ArrowArray> array(&next);
      if (array.released()) break;
      verify(*array, *made->schema);
      made->rows += array->length;
      if (array->length > 0) made->arrays.push_back(std::move(array));
    }
  });
  return made;
}

}  // namespace cairn::python
