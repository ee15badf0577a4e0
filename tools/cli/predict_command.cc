#include "tools/cli/predict_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>

#include "core/base/clock.h"
#include "core/disk/output_file.h"
#include "data/dataset/file_source.h"
#include "model/saved/loaded_model.h"
#include "model/saved/predictions.h"
#include "tools/cli/model_options.h"
#include "tools/job/model/trained_model.h"
#include "tools/job/parts/job_warnings.h"
#include "tools/job/train/user_files.h"

namespace cairn::tools {
namespace {

struct PredictRequest : ModelOptions {
  std::string out;
  bool overwrite = false;
};

// New examples may lack the column that is to be predicted. If a header names the columns, that
// does no harm; without a header, the number of cells shows it.
Dataset raw_examples(const LoadedModel& model, const PredictRequest& request) {
  const std::vector<std::string> files = request.paths();
  const Dataset raw =
      request.skip_bad_rows ? model.read(files, OnError::kSkipAndCount) : model.read(files);
  const FileSource* const source = file_source_of(*raw.last());
  const FileSourcePtr without =
      source == nullptr ? nullptr : source->without_column(model.about().label);
  return without == nullptr ? raw : dataset_of(without);
}

// A batch that fails is lost whole, so its rows before the error are predicted once more, one by
// one. A pipe cannot be read again, so the rows of that batch are missing there.
[[noreturn]] void raise_with_kept(LoadedModel& model, const Dataset& examples,
                                  Predictions& predictions, const std::exception_ptr& error) {
  ErrorParts parts = error_parts(error);
  if (parts.code != Code::kInvalidArgument && parts.code != Code::kDataLoss) throw_error(parts);
  try {
    const auto write = [&](const std::vector<Tensor>& outputs) { predictions.write(outputs); };
    model.predict(examples.skip(predictions.written()), write, {.batch = 1});
  } catch (const Error&) {  // the same one
  }
  if (const std::string kept = predictions.keep_partial(); !kept.empty())
    parts.message +=
        str("; the predictions of the first ", predictions.written(), " rows are in ", kept);
  throw_error(parts);
}

// The file is looked at before anything is computed: a refusal after an hour would be a waste.
int predict(const PredictRequest& request) {
  if (request.out != "-")
    verify_new_file(request.out, request.overwrite ? Overwrite::kYes : Overwrite::kNo);
  LoadedModel model = LoadedModel::load(model_at(request.model), request.device);
  const TimePoint began = system_clock().now();
  LinesRead met;
  const PredictOptions options{
      .batch = request.batch, .line_events = events_into(met), .pipes = Pipes::kReadOnce};
  const Dataset examples = model.prepare(raw_examples(model, request));
  Predictions predictions(request.out, model.about().outputs);
  const auto write = [&](const std::vector<Tensor>& outputs) { predictions.write(outputs); };
  try {
    met.skipped = model.predict(examples, write, options);
  } catch (const Error&) {
    raise_with_kept(model, examples, predictions, std::current_exception());
  }
  predictions.finish();
  if (const std::string text = passed_over_text(met, "--data", Speaker::kModelCommand);
      !text.empty())
    std::fprintf(stderr, "%s\n", text.c_str());
  // If predictions go to standard output, this summary must not mix with them.
  const bool mixed = request.out == "-" || output_place(request.out).in_place;
  std::fprintf(mixed ? stderr : stdout, "%s: %lld predictions in %.2f s\n", request.out.c_str(),
               static_cast<long long>(predictions.written()),
               std::chrono::duration<double>(system_clock().now() - began).count());
  return 0;
}

}  // namespace

void add_predict_command(CLI::App& app, int& status) {
  auto request = std::make_shared<PredictRequest>();
  CLI::App* command =
      app.add_subcommand("predict", "Predict from files by a model that `cairn train` has saved");
  add_model_options(*command, *request,
                    "Files in the form of the training data, with its label column or without; -: "
                    "standard input");
  command
      ->add_option("--out", request->out,
                   "The file to write: CSV, or JSON lines if it ends in .jsonl; -: standard output")
      ->required();
  command->add_flag("--overwrite", request->overwrite, "Replace a file that is there already");
  command->callback([request, &status] { status = predict(*request); });
}

}  // namespace cairn::tools
