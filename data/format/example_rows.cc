// A record is read in two steps: where each wanted feature's bytes are, then their values, feature
// by feature into its column. Examples of one file have their features mostly in one order, so the
// names are guessed and compared before they are looked up.
#include "data/format/example_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "data/dataset/label_range.h"
#include "data/feature/numbers.h"
#include "data/feature/printable.h"
#include "data/format/proto_fields.h"

namespace cairn {
namespace {

using Wire = ProtoFields::Wire;

constexpr std::uint64_t kBytesList = 1, kFloatList = 2, kInt64List = 3;
constexpr std::size_t kPlacesGuessed = 1024;

const char* name_of_list(std::uint64_t kind) {
  return kind == kBytesList   ? "a bytes_list"
         : kind == kFloatList ? "a float_list"
                              : "an int64_list";
}

// One feature: what is wanted, and the values of all rows so far. Only the vector of its dtype is
// used.
class Column {
 public:
  explicit Column(const ExampleFeature& feature)
      : feature_(feature),
        count_(feature.ragged ? 0 : static_cast<std::size_t>(feature.shape.elements())) {
    if (!feature.default_value) return;
    parse_float(*feature.default_value, default_float_);
    parse_integer(*feature.default_value, default_integer_);
  }

  const std::string& name() const { return feature_.name; }
  // Whether all values of the row that was added last lie in [0, 1].
  bool last_lies_in(const LabelRange& range) const {
    const auto lies = [&range](auto value) { return range.holds(static_cast<double>(value)); };
    return std::all_of(floats_.end() - last(floats_), floats_.end(), lies) &&
           std::all_of(integers_.end() - last(integers_), integers_.end(), lies);
  }
  // The first value of that row that is not one of the feature's ids; empty: all are.
  std::string last_that_is_no_id() const {
    if (feature_.ids.any()) return "";
    for (std::size_t begin = last_begin(integers_), i = begin; i < integers_.size(); ++i)
      if (!feature_.ids.holds(integers_[i], i - begin))
        return str(integers_[i], " is not ", feature_.ids.text(i - begin),
                   " (ExampleFeature::ids)");
    return "";
  }
  // Whether all values of that row are finite numbers.
  bool last_is_finite() const {
    if (feature_.dtype != DType::kFloat32) return true;
    return std::all_of(floats_.begin() + static_cast<std::ptrdiff_t>(last_begin(floats_)),
                       floats_.end(), [](float value) { return std::isfinite(value); });
  }
  // Where this example's Feature is; the last of several of one name counts.
  void set(std::string_view message) {
    message_ = message;
    present_ = true;
  }

  // Adds the values; false: it cannot, and `why` says why. truncate() then takes back what it did.
  bool add(std::string& why) {
    const std::size_t before = size();
    if (present_ && !read(why)) return false;
    present_ = false;
    const std::size_t values = size() - before;
    if (feature_.ragged) {
      splits_.push_back(static_cast<std::int64_t>(size()));
      return true;
    }
    if (values == count_) return true;
    if (values == 0 && feature_.default_value) {
      fill();
      return true;
    }
    why = values == 0
              ? std::string("it has no values, and no ExampleFeature::default_value")
              : str("it has ", values, feature_.dtype == DType::kUint8 ? " bytes" : " values",
                    " where ", count_, " are expected");
    return false;
  }
  void truncate(std::size_t rows) {
    present_ = false;
    if (feature_.ragged) splits_.resize(rows + 1);
    const std::size_t values =
        feature_.ragged ? static_cast<std::size_t>(splits_.back()) : rows * count_;
    floats_.resize(std::min(values, floats_.size()));
    integers_.resize(std::min(values, integers_.size()));
    texts_.resize(std::min(values, texts_.size()));
    bytes_.resize(std::min(values, bytes_.size()));
  }
  void take(std::int64_t rows, std::vector<Tensor>& columns) {
    Shape shape = feature_.ragged ? Shape{static_cast<std::int64_t>(size())}
                                  : feature_.shape.with_front(rows);
    switch (feature_.dtype) {
      case DType::kFloat32: columns.push_back(take_tensor(std::move(shape), floats_)); break;
      case DType::kInt64: columns.push_back(take_tensor(std::move(shape), integers_)); break;
      case DType::kUint8: columns.push_back(take_tensor(std::move(shape), bytes_)); break;
      default: columns.push_back(Tensor::strings(std::move(shape), std::move(texts_)));
    }
    if (feature_.ragged) columns.push_back(take_tensor({rows + 1}, splits_));
  }
  void truncate_all() {
    splits_.assign(1, 0);
    truncate(0);
  }

 private:
  template <typename T>
  std::ptrdiff_t last(const std::vector<T>& values) const {
    return static_cast<std::ptrdiff_t>(std::min(count_, values.size()));
  }
  // Where the values of the row that was added last begin.
  template <typename T>
  std::size_t last_begin(const std::vector<T>& values) const {
    if (!feature_.ragged) return values.size() - std::min(count_, values.size());
    return splits_.size() < 2 ? 0 : static_cast<std::size_t>(splits_[splits_.size() - 2]);
  }
  std::size_t size() const {
    switch (feature_.dtype) {
      case DType::kFloat32: return floats_.size();
      case DType::kInt64: return integers_.size();
      case DType::kUint8: return bytes_.size();
      default: return texts_.size();
    }
  }
  std::uint64_t kind() const {
    if (feature_.dtype == DType::kFloat32) return kFloatList;
    return feature_.dtype == DType::kInt64 ? kInt64List : kBytesList;
  }

  // A Feature is one of three lists.
  bool read(std::string& why) {
    std::uint64_t other = 0;
    bool fits = true;
    ProtoFields feature(message_);
    while (feature.next()) {
      if (feature.field() < kBytesList || feature.field() > kInt64List) continue;
      if (feature.wire() != Wire::kBytes) return refuse(why);
      if (feature.field() != kind()) {
        other = feature.field();
        continue;
      }
      fits = fits && read_list(feature.bytes());
    }
    if (feature.broken() || !fits) return refuse(why);
    if (other == 0) return true;
    why = str("it holds ", name_of_list(other), ", and dtype ", dtype_name(feature_.dtype),
              " is read from ", name_of_list(kind()));
    return false;
  }
  static bool refuse(std::string& why) {
    why = "its bytes are not a tf.train.Feature";
    return false;
  }

  // Lists of numbers are one packed run of bytes, or a field for each.
  bool read_list(std::string_view message) {
    ProtoFields list(message);
    while (list.next()) {
      if (list.field() != 1) continue;
      switch (feature_.dtype) {
        case DType::kFloat32:
          if (list.wire() != Wire::kBytes && list.wire() != Wire::kFixed32) return false;
          if (!read_floats(list.bytes())) return false;
          break;
        case DType::kInt64:
          if (list.wire() == Wire::kVarint)
            integers_.push_back(static_cast<std::int64_t>(list.number()));
          else if (list.wire() != Wire::kBytes || !read_integers(list.bytes()))
            return false;
          break;
        default:
          if (list.wire() != Wire::kBytes) return false;
          if (feature_.dtype == DType::kString)
            texts_.emplace_back(list.bytes());
          else
            read_bytes(list.bytes());
      }
    }
    return !list.broken();
  }
  bool read_floats(std::string_view bytes) {
    if (bytes.size() % 4 != 0) return false;
    const std::size_t before = floats_.size();
    floats_.resize(before + bytes.size() / 4);
    if (!bytes.empty()) std::memcpy(&floats_[before], bytes.data(), bytes.size());
    return true;
  }
  // As ProtoFields::varint() reads them. Ids have several bytes, so that a call for each costs more
  // than all else.
  bool read_integers(std::string_view bytes) {
    std::uint64_t value = 0;
    int shift = 0;
    for (const char one : bytes) {
      const auto byte = static_cast<unsigned char>(one);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      shift += 7;
      if (byte < 0x80) {
        integers_.push_back(static_cast<std::int64_t>(value));
        value = 0;
        shift = 0;
      } else if (shift == 70) {
        return false;
      }
    }
    return shift == 0;
  }
  // From bytes of the same type, so that they are copied at once.
  void read_bytes(std::string_view bytes) {
    const auto* const first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    bytes_.insert(bytes_.end(), first, first + bytes.size());
  }
  void fill() {
    switch (feature_.dtype) {
      case DType::kFloat32: floats_.resize(floats_.size() + count_, default_float_); break;
      case DType::kInt64: integers_.resize(integers_.size() + count_, default_integer_); break;
      case DType::kUint8:
        bytes_.resize(bytes_.size() + count_, static_cast<std::uint8_t>(default_integer_));
        break;
      default: texts_.resize(texts_.size() + count_, *feature_.default_value);
    }
  }

  const ExampleFeature& feature_;
  const std::size_t count_;
  float default_float_ = 0;
  std::int64_t default_integer_ = 0;
  std::string_view message_;
  bool present_ = false;
  std::vector<float> floats_;
  std::vector<std::int64_t> integers_, splits_{0};
  std::vector<std::string> texts_;
  std::vector<std::uint8_t> bytes_;
};

class ExampleRows final : public RowDecoder {
 public:
  explicit ExampleRows(const ExampleSchema& schema)
      : label_range_(label_range(schema)), finite_(schema.finite) {
    columns_.reserve(schema.features.size());
    for (const ExampleFeature& feature : schema.features) {
      if (!label_range_.any() && feature.name == schema.label) label_ = columns_.size();
      place_of_[feature.name] = static_cast<int>(columns_.size());
      columns_.emplace_back(feature);
    }
  }

  bool add(std::string_view record, RecordFault& fault) override {
    fault = {};
    if (!find_features(record)) {
      fault.why = "its bytes are not a tf.train.Example";
    }
    for (std::size_t i = 0; i < columns_.size() && fault.why.empty(); ++i)
      if (!add_to(i, fault.why))
        fault.why = str("feature \"", printable(columns_[i].name()), "\": ", fault.why);
    if (fault.why.empty() && label_ && !columns_[*label_].last_lies_in(label_range_))
      fault.why = str("label \"", printable(columns_[*label_].name()), "\": it is not ",
                      label_range_.text());
    if (!fault.why.empty()) {
      for (Column& column : columns_) column.truncate(static_cast<std::size_t>(rows_));
      return false;
    }
    ++rows_;
    bytes_ += record.size();
    return true;
  }
  std::int64_t rows() const override { return rows_; }
  std::size_t bytes() const override { return bytes_; }
  std::vector<Tensor> take() override {
    std::vector<Tensor> columns;
    for (Column& column : columns_) column.take(rows_, columns);
    clear();
    return columns;
  }
  void clear() override {
    for (Column& column : columns_) column.truncate_all();
    rows_ = 0;
    bytes_ = 0;
  }

 private:
  // For the label, finiteness is left to the later check of its range.
  bool add_to(std::size_t place, std::string& why) {
    Column& column = columns_[place];
    if (!column.add(why)) return false;
    if (finite_ && place != label_ && !column.last_is_finite())
      why = "it holds a number that is not finite";
    else
      why = column.last_that_is_no_id();
    return why.empty();
  }
  // Example.features is a Features, whose map is a list of entries: a name, and a Feature.
  bool find_features(std::string_view record) {
    std::size_t entry = 0;
    ProtoFields example(record);
    while (example.next()) {
      if (example.field() != 1) continue;
      if (example.wire() != Wire::kBytes) return false;
      ProtoFields features(example.bytes());
      while (features.next())
        if (features.field() == 1 &&
            (features.wire() != Wire::kBytes || !find_feature(features.bytes(), entry++)))
          return false;
      if (features.broken()) return false;
    }
    return !example.broken();
  }
  bool find_feature(std::string_view message, std::size_t entry) {
    std::string_view name, feature;
    ProtoFields fields(message);
    while (fields.next()) {
      if (fields.is(1, Wire::kBytes)) name = fields.bytes();
      if (fields.is(2, Wire::kBytes)) feature = fields.bytes();
    }
    if (fields.broken()) return false;
    if (const int place = place_of(name, entry); place >= 0)
      columns_[static_cast<std::size_t>(place)].set(feature);
    return true;
  }
  // The column of the name that was met at this place of the example before, if it is the same.
  int place_of(std::string_view name, std::size_t entry) {
    if (entry < guesses_.size() && guesses_[entry].name == name) return guesses_[entry].place;
    const auto found = place_of_.find(std::string(name));
    const int place = found == place_of_.end() ? -1 : found->second;
    if (entry >= guesses_.size() && entry < kPlacesGuessed) guesses_.resize(entry + 1);
    if (entry < guesses_.size() && name.size() < kNameBytesGuessed)
      guesses_[entry] = {std::string(name), place};
    return place;
  }

  static constexpr std::size_t kNameBytesGuessed = 256;
  struct Guess {
    std::string name;
    int place = -1;
  };
  std::vector<Column> columns_;
  std::unordered_map<std::string, int> place_of_;
  const LabelRange label_range_;
  const bool finite_;
  std::optional<std::size_t> label_;  // its place, where it cannot be any number
  std::vector<Guess> guesses_;
  std::int64_t rows_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<RowDecoder> make_example_rows(const ExampleSchema& schema) {
  return std::make_unique<ExampleRows>(schema);
}

}  // namespace cairn
