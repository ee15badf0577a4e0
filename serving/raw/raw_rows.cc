#include "serving/raw/raw_rows.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "data/dataset/file_source.h"
#include "data/dataset/stage.h"
#include "data/file/memory_bytes.h"
#include "data/format/json/json_text.h"
#include "model/saved/model_examples.h"

namespace cairn::serving {
namespace {

constexpr const char* kBody = "body";  // the file's name in messages
// Rows are counted before more of them are decoded.
constexpr std::int64_t kRowsAtOnce = 512;

const StageSpec& source_stage(const SavedModel& model) {
  if (!model.examples.defined())
    throw FailedPreconditionError(
        str("the model \"", model.name, "\" was saved without examples: it reads no rows; send ",
            "tensors, or save it with the examples that it was trained on"));
  const StageSpec* stage = model.examples.last().get();
  while (stage->input) stage = stage->input.get();
  return *stage;
}

const FileSource& source_of(const SavedModel& model) {
  const FileSource* const source = file_source_of(source_stage(model));
  if (source == nullptr)
    throw FailedPreconditionError(str("the examples of the model \"", model.name,
                                      "\" come from no file, whose rows it could read: send ",
                                      "tensors"));
  return *source;
}

// The rows of the body as the training data has them, with their label.
Dataset labelled(const SavedModel& model, RawForm form) {
  const FileSource& source = source_of(model);
  if (!source.is_text())
    throw UnimplementedError(str("the model \"", model.name, "\" was trained from files of the ",
                                 "format \"", source.format(),
                                 "\", whose rows are no text: send tensors"));
  if (form == RawForm::kText)
    return with_on_error(dataset_of(source.reading({kBody})), OnError::kFail);
  if (source.cell_schema() == nullptr)
    throw UnimplementedError(str("the model \"", model.name, "\" was trained from files of the ",
                                 "format \"", source.format(), "\", whose columns JSON objects ",
                                 "have no names for: send such lines as text, or tensors"));
  return json_text(kBody, *source.cell_schema());
}

// A prediction needs no label. A map() that was traced with one, though, takes it.
Dataset examples_of(const SavedModel& model, RawForm form) {
  const Dataset raw = labelled(model, form);
  const std::string& label = model.label.empty() ? raw.element_spec().label : model.label;
  const FileSourcePtr without =
      label.empty() ? nullptr : file_source_of(*raw.last())->without_column(label);
  if (without == nullptr) return prepared(model.examples, raw);
  try {
    return prepared(model.examples, dataset_of(without));
  } catch (const InvalidArgumentError&) {
    return prepared(model.examples, raw);
  }
}

}  // namespace

// The stages over one form of bodies.
class RawRows::Reader {
 public:
  Reader(const SavedModel& model, RawForm form)
      : examples_(examples_of(model, form)),
        layout_(std::make_shared<const BlockLayout>(examples_.element_spec())) {
    const ElementSpec batch = examples_.batch(1).element_spec();
    for (const ColumnSpec& column : model.input.columns) places_.push_back(batch.find(column.name));
  }

  RawExamples read(std::string_view body, const RawLimits& limits) {
    text_ = body;
    left_out_ = 0;
    begin();
    const Block rows = all_rows(limits);
    verify(rows);
    const Element batch = rows.pack(layout_).batch();
    RawExamples made{{}, rows.size()};
    made.columns.reserve(places_.size());
    for (const std::size_t place : places_) made.columns.push_back(batch[place]);
    return made;
  }

 private:
  // Opening reads the header, so that the text has to be there before.
  void begin() {
    if (stages_) return stages_->restart(0);
    OpenOptions options;
    options.line_events.on_filtered_rows = [this](std::int64_t rows) { left_out_ += rows; };
    options.line_events.on_unlabelled_rows = options.line_events.on_filtered_rows;
    options.open_bytes = [this](const std::string&) -> std::unique_ptr<ByteSource> {
      return std::make_unique<MemoryBytes>(text_);
    };
    stages_ = open_stages(examples_.last(), options);
  }
  Block all_rows(const RawLimits& limits) {
    std::vector<Block> parts;
    std::int64_t size = 0;
    std::size_t bytes = 0;
    for (;;) {
      parts.push_back(stages_->next(std::min(limits.examples_max - size + 1, kRowsAtOnce)));
      if (parts.back().empty()) break;
      size += parts.back().size();
      bytes += parts.back().bytes();
      if (size > limits.examples_max)
        throw InvalidArgumentError(str("the body has more than ", limits.examples_max,
                                       " rows, as many as one request may have: send several"));
      if (bytes > limits.bytes_max)
        throw InvalidArgumentError(str("the columns of the body's first ", size,
                                       " rows take more than ", limits.bytes_max,
                                       " bytes: send fewer rows at once"));
    }
    parts.pop_back();
    return Block::concat(std::move(parts));
  }
  // Predictions are matched to rows by their places, so that none may be left out.
  void verify(const Block& rows) const {
    if (left_out_ > 0)
      throw InvalidArgumentError(
          str(left_out_, " rows of the body do not meet the conditions (`where`) by which rows of ",
              "the model's data are chosen: leave them out"));
    if (rows.empty()) throw InvalidArgumentError("the body has no rows");
  }

  const Dataset examples_;
  const std::shared_ptr<const BlockLayout> layout_;
  std::vector<std::size_t> places_;  // of the model's input
  std::string_view text_;            // the body, while it is read
  std::int64_t left_out_ = 0;
  std::unique_ptr<Stage> stages_;
};

RawRows::RawRows(const SavedModel& model, const RawLimits& limits)
    : model_(model), limits_(limits) {}
RawRows::~RawRows() = default;

RawRows::Reader& RawRows::reader(RawForm form) {
  std::unique_ptr<Reader>& reader = form == RawForm::kJson ? json_ : text_;
  if (!reader) reader = std::make_unique<Reader>(model_, form);
  return *reader;
}

RawExamples RawRows::read(std::string_view body, RawForm form) {
  return reader(form).read(body, limits_);
}

}  // namespace cairn::serving
