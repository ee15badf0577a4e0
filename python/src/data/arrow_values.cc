#include "arrow_values.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <string_view>
#include <thread>

#include "core/base/error.h"

namespace cairn::python {
namespace {

[[noreturn]] void damaged(const std::string& what) {
  throw InvalidArgumentError(str("the Arrow stream of this table is damaged: ", what));
}

bool bit(const std::uint8_t* bits, std::int64_t i) { return (bits[i >> 3] >> (i & 7)) & 1; }

std::string_view format_of(const ArrowSchema& schema) { return schema.format; }

}  // namespace

// ---- slices ----

ArrowSlice ArrowSlice::child(std::int64_t i, std::int64_t from, std::int64_t count) const {
  const ArrowArray& below = *array->children[i];
  if (from < 0 || count < 0 || from > below.length - count)
    damaged(str("a child of ", below.length, " elements where ", from + count, " are wanted"));
  return {schema->children[i], &below, below.offset + from, count};
}

bool ArrowSlice::may_have_nulls() const {
  return array->null_count != 0 && array->n_buffers > 0 && array->buffers[0] != nullptr;
}

bool ArrowSlice::is_null(std::int64_t i) const {
  if (array->n_buffers < 1 || array->buffers[0] == nullptr) return true;  // of the type of nulls
  return !bit(static_cast<const std::uint8_t*>(array->buffers[0]), offset + i);
}

std::int64_t ArrowSlice::first_null() const {
  if (format_of(*schema) == "n") return length > 0 ? 0 : -1;
  if (!may_have_nulls()) return -1;
  const auto* bits = static_cast<const std::uint8_t*>(array->buffers[0]);
  for (std::int64_t i = 0; i < length;) {
    if (((offset + i) & 7) == 0 && length - i >= 8 && bits[(offset + i) >> 3] == 0xFF) {
      i += 8;
      continue;
    }
    if (is_null(i)) return i;
    ++i;
  }
  return -1;
}

const std::byte* ArrowSlice::buffer(std::int64_t i) const {
  if (i >= array->n_buffers || (array->buffers[i] == nullptr && length > 0))
    damaged("an array lacks a buffer");
  return static_cast<const std::byte*>(array->buffers[i]);
}

ArrowTarget ArrowTarget::from(std::int64_t place) const {
  ArrowTarget moved = *this;
  if (moved.texts != nullptr) moved.texts += place;
  if (moved.numbers != nullptr)
    moved.numbers += place * static_cast<std::int64_t>(dtype_bytes(dtype));
  return moved;
}

void in_pieces(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& run) {
  constexpr std::int64_t kPiece = 1 << 18, kThreadsMax = 8;
  const std::int64_t threads =
      std::min({count / kPiece, kThreadsMax,
                static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()))});
  if (threads < 2) return run(0, count);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> pieces;
    for (std::int64_t i = 0; i < threads; ++i)
      pieces.emplace_back([&, i] {
        try {
          run(count * i / threads, count * (i + 1) / threads);
        } catch (...) {
          failures[static_cast<std::size_t>(i)] = std::current_exception();
        }
      });
  }
  for (const std::exception_ptr& failure : failures)
    if (failure != nullptr) std::rethrow_exception(failure);
}

namespace {

// ---- numbers ----

template <typename To>
To fallback_of(const Tensor& standing_in) {
  To value{};
  std::memcpy(&value, standing_in.raw(), sizeof value);
  return value;
}

// Values below nulls mean nothing, and are written over.
template <typename To>
void fill_nulls(const ArrowSlice& slice, To* out, const Tensor& standing_in) {
  std::int64_t i = slice.first_null();
  if (i < 0) return;
  if (!standing_in.defined()) throw ArrowNull{i};
  const To value = fallback_of<To>(standing_in);
  for (; i < slice.length; ++i)
    if (slice.is_null(i)) out[i] = value;
}

template <typename From, typename To>
void convert(const ArrowSlice& slice, std::byte* to, const Tensor& standing_in,
             const std::string& column) {
  if (slice.length == 0) return;
  const auto from = slice.numbers<From>(1);
  auto* out = reinterpret_cast<To*>(to);
  if constexpr (sizeof(From) == sizeof(To) && std::is_same_v<From, To>) {
    std::memcpy(out, from.bytes, static_cast<std::size_t>(slice.length) * sizeof(To));
  } else {
    for (std::int64_t i = 0; i < slice.length; ++i) out[i] = static_cast<To>(from[i]);
  }
  if constexpr (std::is_same_v<From, std::uint64_t>) {
    const bool nulls = slice.may_have_nulls();
    for (std::int64_t i = 0; i < slice.length; ++i)
      if (out[i] < 0 && !(nulls && slice.is_null(i)))
        throw InvalidArgumentError(str("column \"", column, "\": the number ", from[i],
                                       " is beyond int64, the widest that Cairn has"));
  }
  fill_nulls(slice, out, standing_in);
}

void convert_bools(const ArrowSlice& slice, std::byte* to, const Tensor& standing_in) {
  if (slice.length == 0) return;
  const auto* bits = reinterpret_cast<const std::uint8_t*>(slice.buffer(1));
  auto* out = reinterpret_cast<std::uint8_t*>(to);
  for (std::int64_t i = 0; i < slice.length; ++i) out[i] = bit(bits, slice.offset + i) ? 1 : 0;
  fill_nulls(slice, out, standing_in);
}

// ---- texts ----

using TextAt = std::function<std::string_view(std::int64_t)>;

template <typename Offset>
TextAt texts_by_offsets(const ArrowSlice& slice) {
  const auto offsets = slice.numbers<Offset>(1);
  const auto* bytes =
      static_cast<const char*>(slice.array->n_buffers > 2 ? slice.array->buffers[2] : nullptr);
  return [offsets, bytes](std::int64_t i) -> std::string_view {
    const Offset begin = offsets[i], end = offsets[i + 1];
    if (begin < 0 || end < begin) damaged("the places of its texts do not ascend");
    if (begin == end) return {};
    if (bytes == nullptr) damaged("an array lacks a buffer");
    return {bytes + begin, static_cast<std::size_t>(end - begin)};
  };
}

// 16 bytes for each text: its length, and the text itself if it is short, else where it lies.
TextAt texts_by_views(const ArrowSlice& slice) {
  const auto* views = reinterpret_cast<const char*>(slice.buffer(1)) + slice.offset * 16;
  const ArrowArray& array = *slice.array;
  const std::int64_t others = array.n_buffers - 3;
  const ArrowNumbers<std::int64_t> sizes{
      others < 0 ? nullptr : static_cast<const std::byte*>(array.buffers[array.n_buffers - 1])};
  return [views, sizes, others, &array](std::int64_t i) -> std::string_view {
    const char* view = views + i * 16;
    std::int32_t part[4];
    std::memcpy(part, view, sizeof part);
    const std::int32_t length = part[0];
    if (length < 0) damaged("a text with a length below 0");
    if (length <= 12) return {view + 4, static_cast<std::size_t>(length)};
    const std::int64_t which = part[2], place = part[3];
    if (which < 0 || which >= others || sizes.bytes == nullptr || place < 0 ||
        place > sizes[which] - length || array.buffers[2 + which] == nullptr)
      damaged("a text lies outside of its buffer");
    return {static_cast<const char*>(array.buffers[2 + which]) + place,
            static_cast<std::size_t>(length)};
  };
}

TextAt texts_of(const ArrowSlice& slice) {
  const std::string_view format = format_of(*slice.schema);
  if (format == "u" || format == "z") return texts_by_offsets<std::int32_t>(slice);
  if (format == "U" || format == "Z") return texts_by_offsets<std::int64_t>(slice);
  return texts_by_views(slice);
}

void read_texts(const ArrowSlice& slice, std::string* out, const Tensor& standing_in) {
  if (slice.length == 0) return;
  const std::int64_t null = slice.first_null();
  if (null >= 0 && !standing_in.defined()) throw ArrowNull{null};
  const std::string_view instead =
      null >= 0 ? std::string_view(standing_in.string_values()[0]) : std::string_view();
  const TextAt text = texts_of(slice);
  in_pieces(slice.length, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      out[i] = null >= 0 && slice.is_null(i) ? instead : text(i);
  });
}

// ---- dictionaries ----

using CodeAt = std::function<std::int64_t(std::int64_t)>;

template <typename Code>
CodeAt codes_of(const ArrowSlice& slice) {
  const auto codes = slice.numbers<Code>(1);
  return [codes](std::int64_t i) { return static_cast<std::int64_t>(codes[i]); };
}

CodeAt codes_of(const ArrowSlice& slice) {
  const std::string_view format = format_of(*slice.schema);
  switch (format.size() == 1 ? format[0] : 0) {
    case 'c': return codes_of<std::int8_t>(slice);
    case 'C': return codes_of<std::uint8_t>(slice);
    case 's': return codes_of<std::int16_t>(slice);
    case 'S': return codes_of<std::uint16_t>(slice);
    case 'i': return codes_of<std::int32_t>(slice);
    case 'I': return codes_of<std::uint32_t>(slice);
    case 'l': return codes_of<std::int64_t>(slice);
    case 'L': return codes_of<std::uint64_t>(slice);
    default: damaged(str("codes of a dictionary of type \"", format, "\""));
  }
}

// The values of the dictionary once, then one for each code. A value of the dictionary may be null
// as well, which counts only if a code names it.
void read_dictionary(const ArrowSlice& slice, const ArrowTarget& target, const Tensor& standing_in,
                     const std::string& column) {
  if (slice.length == 0) return;
  const ArrowArray& values = *slice.array->dictionary;
  const ArrowSlice all{slice.schema->dictionary, &values, values.offset, values.length};
  const bool texts = target.dtype == DType::kString;
  const std::size_t bytes = dtype_bytes(target.dtype);
  std::vector<std::string> known_texts(texts ? static_cast<std::size_t>(all.length) : 0);
  std::vector<std::byte> known(static_cast<std::size_t>(all.length) * bytes);
  const bool nulls = slice.may_have_nulls(), value_nulls = all.first_null() >= 0;
  const Tensor blank =
      texts ? Tensor::strings({}, std::vector<std::string>{""}) : Tensor::zeros(target.dtype, {});
  read_arrow_values(all, {target.dtype, known.data(), known_texts.data()}, blank, column);
  const CodeAt code = codes_of(slice);
  in_pieces(slice.length, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const bool none = nulls && slice.is_null(i);
      const std::int64_t at = none ? 0 : code(i);
      if (!none && (at < 0 || at >= all.length))
        damaged(str("the code ", at, " in a dictionary of ", all.length, " values"));
      const bool null = none || (value_nulls && all.is_null(at));
      if (null && !standing_in.defined()) throw ArrowNull{i};
      if (texts)
        target.texts[i] =
            null ? standing_in.string_values()[0] : known_texts[static_cast<std::size_t>(at)];
      else
        std::memcpy(target.numbers + static_cast<std::size_t>(i) * bytes,
                    null ? standing_in.raw() : known.data() + static_cast<std::size_t>(at) * bytes,
                    bytes);
    }
  });
}

void read_nulls(const ArrowSlice& slice, const ArrowTarget& target, const Tensor& standing_in) {
  if (slice.length == 0) return;
  if (!standing_in.defined()) throw ArrowNull{0};
  for (std::int64_t i = 0; i < slice.length; ++i)
    std::memcpy(target.numbers + static_cast<std::size_t>(i) * dtype_bytes(target.dtype),
                standing_in.raw(), dtype_bytes(target.dtype));
}

}  // namespace

void read_arrow_values(const ArrowSlice& slice, const ArrowTarget& target,
                       const Tensor& standing_in, const std::string& column) {
  if (slice.schema->dictionary != nullptr)
    return read_dictionary(slice, target, standing_in, column);
  if (target.dtype == DType::kString) return read_texts(slice, target.texts, standing_in);
  std::byte* to = target.numbers;
  using Read = void (*)(const ArrowSlice&, std::byte*, const Tensor&, const std::string&);
  static constexpr std::pair<char, Read> kReaders[] = {{'c', convert<std::int8_t, std::int32_t>},
                                                       {'C', convert<std::uint8_t, std::uint8_t>},
                                                       {'s', convert<std::int16_t, std::int32_t>},
                                                       {'S', convert<std::uint16_t, std::int32_t>},
                                                       {'i', convert<std::int32_t, std::int32_t>},
                                                       {'I', convert<std::uint32_t, std::int64_t>},
                                                       {'l', convert<std::int64_t, std::int64_t>},
                                                       {'L', convert<std::uint64_t, std::int64_t>},
                                                       {'e', convert<std::uint16_t, std::uint16_t>},
                                                       {'f', convert<float, float>},
                                                       {'g', convert<double, double>}};
  const char format = slice.schema->format[0];
  if (format == 'b') return convert_bools(slice, to, standing_in);
  if (format == 'n') return read_nulls(slice, target, standing_in);
  for (const auto& [each, read] : kReaders)
    if (each == format) return read(slice, to, standing_in, column);
  damaged("a type that changed");
}

}  // namespace cairn::python
