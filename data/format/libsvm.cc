// libsvm(): "label qid:number index:value index:value ... # comment". A line is read once, from its
// first character to its last, straight into the columns.
//   Source  the README of LIBSVM; qid and comments as in svmlight.
#include "data/format/libsvm.h"

#include <algorithm>

#include "data/dataset/dataset.h"
#include "data/feature/number_complaint.h"
#include "data/feature/numbers.h"
#include "data/feature/printable.h"
#include "data/file/line_reader.h"
#include "data/format/row_stage.h"
#include "data/format/wire_parts.h"

namespace cairn {
namespace {

bool ends_token(char c) { return c == ' ' || c == '\t' || c == '#'; }

bool is_among(std::string_view text, const std::vector<std::string>& texts) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

class LibsvmRows final : public RowDecoder {
 public:
  explicit LibsvmRows(const LibsvmSchema& schema)
      : schema_(schema), base_(schema.zero_based ? 0 : 1) {}

  bool add(std::string_view record, RecordFault& fault) override {
    line_ = record.data();
    at_ = line_;
    end_ = line_ + record.size();
    fault_ = &fault;
    const std::size_t before = ids_.size();
    float label = 0;
    std::int64_t qid = -1;
    if (!read_label(label) || !read_qid(qid) || !read_pairs()) {
      ids_.resize(before);
      values_.resize(before);
      return false;
    }
    labels_.push_back(label);
    if (!schema_.qid.empty()) qids_.push_back(qid);
    splits_.push_back(static_cast<std::int64_t>(ids_.size()));
    return true;
  }
  std::int64_t rows() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::size_t bytes() const override { return 12 * ids_.size(); }
  std::vector<Tensor> take() override {
    const std::int64_t size = rows(), all = static_cast<std::int64_t>(ids_.size());
    const Tensor splits = Tensor::of<std::int64_t>({size + 1}, std::span(std::as_const(splits_)));
    std::vector<Tensor> columns{take_tensor({size}, labels_)};
    if (!schema_.qid.empty()) columns.push_back(take_tensor({size}, qids_));
    columns.insert(columns.end(),
                   {take_tensor({all}, ids_), splits, take_tensor({all}, values_), splits});
    clear();
    return columns;
  }
  void clear() override {
    labels_.clear();
    qids_.clear();
    ids_.clear();
    values_.clear();
    splits_.assign(1, 0);
  }

 private:
  bool refuse(const char* at, std::string why) {
    *fault_ = {.why = std::move(why), .column = at - line_ + 1};
    return false;
  }
  // Goes to the next token; false: the line has no more.
  bool find_token() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t')) ++at_;
    return at_ != end_ && *at_ != '#';
  }
  std::string_view take_token() {
    const char* begin = at_;
    while (at_ != end_ && !ends_token(*at_)) ++at_;
    return {begin, static_cast<std::size_t>(at_ - begin)};
  }

  bool read_label(float& label) {
    find_token();  // a line without any is no record
    const char* begin = at_;
    const std::string_view text = take_token();
    const CsvLabel& rule = schema_.label;
    if (!rule.positive.empty()) {
      label = is_among(text, rule.positive) ? 1.0f : 0.0f;
      if (label == 1 || rule.negative.empty() || is_among(text, rule.negative)) return true;
      return refuse(begin, str("the label \"", printable(text),
                               "\" is none of its positive and negative values"));
    }
    if (!parse_float(text, label)) return refuse_number(begin, "the label ", text);
    if (rule.binary && !(label >= 0 && label <= 1))
      return refuse(begin, str("\"", printable(text),
                               "\" is not a label of two classes, which must lie in [0, 1]; if the "
                               "file says -1 and +1, name the texts in LibsvmSchema::label"));
    return true;
  }

  bool read_qid(std::int64_t& qid) {
    constexpr std::string_view kName = "qid:";
    const char* begin = at_;
    if (find_token() &&
        std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(kName)) {
      begin = at_;
      std::string_view text = take_token();
      text.remove_prefix(kName.size());
      if (parse_integer(text, qid) && qid >= 0) return true;
      return refuse(begin, str("the qid \"", printable(text), "\" is not a whole number from 0"));
    }
    if (schema_.qid.empty()) return true;
    return refuse(begin, str("the line has no qid behind its label, and LibsvmSchema::qid = \"",
                             schema_.qid, "\" wants one"));
  }

  // The loop that the speed of reading hangs on. 18 digits cannot overflow.
  bool read_pairs() {
    constexpr int kDigitsMax = 18;
    while (find_token()) {
      const char* begin = at_;
      std::uint64_t index = 0;
      while (at_ != end_ && static_cast<unsigned char>(*at_ - '0') <= 9)
        index = index * 10 + static_cast<unsigned char>(*at_++ - '0');
      const bool is_index = at_ != begin && at_ - begin <= kDigitsMax;
      if (!is_index || at_ == end_ || *at_ != ':') return refuse_pair(begin);
      const auto id = static_cast<std::int64_t>(index) - base_;
      if (id < 0 || (schema_.dimension > 0 && id >= schema_.dimension))
        return refuse_id(begin, index);
      ++at_;
      float value = 0;
      const std::string_view text = take_token();
      if (!parse_float(text, value))
        return number_fault(text, DType::kFloat32) == NumberFault::kNoNumber
                   ? refuse_pair(begin)
                   : refuse_number(begin, "the value ", text);
      ids_.push_back(id);
      values_.push_back(value);
    }
    return true;
  }
  bool refuse_pair(const char* begin) {
    at_ = begin;
    return refuse(begin, str("\"", printable(take_token()), "\" is not index:value"));
  }
  bool refuse_number(const char* begin, const char* what, std::string_view text) {
    return refuse(begin, what + number_complaint(text, DType::kFloat32));
  }
  bool refuse_id(const char* begin, std::uint64_t index) {
    if (static_cast<std::int64_t>(index) < base_)
      return refuse(begin,
                    "the index 0, where indexes begin at 1; if the file counts from 0, set "
                    "LibsvmSchema::zero_based");
    return refuse(begin, str("the index ", index, " is beyond LibsvmSchema::dimension = ",
                             schema_.dimension, schema_.zero_based ? "" : ", counted from 1"));
  }

  const LibsvmSchema& schema_;
  const std::int64_t base_;
  std::vector<float> labels_, values_;
  std::vector<std::int64_t> qids_, ids_, splits_{0};
  const char *line_ = nullptr, *at_ = nullptr, *end_ = nullptr;  // the line at hand
  RecordFault* fault_ = nullptr;
};

}  // namespace

ElementSpec LibsvmFiles::element() const {
  check_paths(paths);
  if (schema.dimension < 0)
    throw InvalidArgumentError(
        str("LibsvmSchema::dimension is ", schema.dimension, ", it must be at least 0"));
  check_label_texts(schema.label);
  if (!schema.label.classes.empty() || schema.label.skip_unknown)
    throw InvalidArgumentError("labels of libsvm have no classes and are never unknown");
  ElementSpec element;
  element.columns.push_back({schema.label.column, {DType::kFloat32, {}}});
  if (!schema.qid.empty()) element.columns.push_back({schema.qid, {DType::kInt64, {}}});
  add_ragged(element, schema.ids, DType::kInt64);
  add_ragged(element, schema.values, DType::kFloat32);
  return checked_element(std::move(element.columns), schema.label.column, "the libsvm schema");
}

StagePtr LibsvmFiles::open(SourceRequest request) const {
  const auto open = [](const std::string& path, std::unique_ptr<ByteSource> bytes) {
    const LineRules rules{.skip_blank = true, .comment = '#'};
    return std::make_unique<LineReader>(path, std::move(bytes), rules);
  };
  RowStageParts parts{.files = {paths, options.on_error, options.empty_files},
                      .open = open,
                      .rows = std::make_unique<LibsvmRows>(schema)};
  return make_row_stage(std::move(parts), std::move(request));
}

void LibsvmFiles::write(StageWriter& writer) const {
  auto out = writer.stage.initLibsvm();
  write_files(out, *this);
  out.setIds(schema.ids);
  out.setValues(schema.values);
  out.setLabelColumn(schema.label.column);
  write_texts(out.initPositive(static_cast<unsigned>(schema.label.positive.size())),
              schema.label.positive);
  write_texts(out.initNegative(static_cast<unsigned>(schema.label.negative.size())),
              schema.label.negative);
  out.setBinaryLabel(schema.label.binary);
  out.setQid(schema.qid);
  out.setZeroBased(schema.zero_based);
  out.setDimension(schema.dimension);
}

Dataset read_libsvm(const StageReader& reader) {
  const auto in = reader.stage.getLibsvm();
  LibsvmSchema schema;
  schema.ids = read_text(in.getIds());
  schema.values = read_text(in.getValues());
  schema.label = {read_text(in.getLabelColumn()), read_texts(in.getPositive()),
                  read_texts(in.getNegative()), in.getBinaryLabel()};
  schema.qid = read_text(in.getQid());
  schema.zero_based = in.getZeroBased();
  schema.dimension = in.getDimension();
  const FileOptions options{read_on_error(in), read_empty_files(in)};
  return Dataset::libsvm(read_paths(in), std::move(schema), options);
}

Dataset Dataset::libsvm(std::vector<std::string> paths, LibsvmSchema schema, FileOptions options) {
  return dataset_of(std::make_shared<LibsvmFiles>(std::move(paths), std::move(schema), options));
}
Dataset Dataset::libsvm(std::string path, LibsvmSchema schema, FileOptions options) {
  return libsvm(std::vector<std::string>{std::move(path)}, std::move(schema), options);
}
Dataset Dataset::libsvm(std::initializer_list<std::string> paths, LibsvmSchema schema,
                        FileOptions options) {
  return libsvm(std::vector<std::string>(paths), std::move(schema), options);
}

}  // namespace cairn
