// Rows per second from bodies of requests, beside those from a file of the same lines:
//
//   build/release/bin/measure_raw_rows MODEL LINES.csv
//
// The model's data has CSV lines without a header. Medians of 5 passes over all lines; reading and
// predicting on one thread.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/program.h"
#include "data/dataset/file_source.h"
#include "model/saved/loaded_model.h"
#include "serving/raw/raw_rows.h"

namespace cairn::serving {
namespace {

double median_seconds(const std::function<void()>& pass) {
  std::vector<double> all;
  pass();
  for (int i = 0; i < 5; ++i) {
    const auto began = std::chrono::steady_clock::now();
    pass();
    all.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  std::ranges::sort(all);
  return all[2];
}

// The text cut into bodies of `rows` lines.
std::vector<std::string> bodies_of(const std::string& text, int rows) {
  std::vector<std::string> bodies;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    for (int i = 0; i < rows && end < text.size(); ++i)
      end = std::min(text.find('\n', end), text.size() - 1) + 1;
    bodies.push_back(text.substr(at, end - at));
    at = end;
  }
  return bodies;
}

// The same lines as JSON lines, all of whose values are texts.
std::string as_json(const std::string& text, const CsvSchema& schema) {
  std::string json;
  for (const std::string& line : bodies_of(text, 1)) {
    std::size_t at = 0;
    for (const CsvColumn& column : schema.columns) {
      const std::size_t end = std::min(line.find_first_of(",\n", at), line.size());
      const std::size_t from = std::min(line.find_first_not_of(' ', at), end);
      json +=
          str(at == 0 ? "{\"" : ", \"", column.name, "\": \"", line.substr(from, end - from), "\"");
      at = std::min(end + 1, line.size());
    }
    json += "}\n";
  }
  return json;
}

void measure(const std::string& folder, const std::string& path) {
  LoadedModel model = LoadedModel::load(folder);
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Dataset raw = model.read({path});
  const FileSource& source = *file_source_of(*raw.last());
  const FileSourcePtr unlabelled = source.without_column(model.about().label);
  const Dataset examples = model.prepare(unlabelled ? dataset_of(unlabelled) : raw);
  std::int64_t rows = 0;
  const double seconds = median_seconds([&] {
    rows = 0;
    model.predict(examples,
                  [&](const std::vector<Tensor>& outputs) { rows += outputs[0].shape().dims()[0]; },
                  {.batch = 64});
  });
  std::printf("a file, batch 64             %9.0f rows/s\n", static_cast<double>(rows) / seconds);
  RawRows read(model.about());
  const auto from_bodies = [&](const char* name, const std::string& all, RawForm form) {
    for (const int each : {1, 64, 1024}) {
      const std::vector<std::string> bodies = bodies_of(all, each);
      const double reading = median_seconds([&] {
        for (const std::string& body : bodies) read.read(body, form);
      });
      const double both = median_seconds([&] {
        for (const std::string& body : bodies) model.predict(read.read(body, form).columns);
      });
      std::printf("%s, %4d rows a request   %9.0f rows/s (%.2f of the file), %.1f us to read\n",
                  name, each, static_cast<double>(rows) / both, seconds / both,
                  reading * 1e6 / static_cast<double>(bodies.size()));
    }
  };
  from_bodies("CSV ", text, RawForm::kText);
  if (const CsvSchema* schema = source.cell_schema())
    from_bodies("JSON", as_json(text, *schema), RawForm::kJson);
}

}  // namespace
}  // namespace cairn::serving

int main(int argc, char** argv) {
  return cairn::run_program("measure_raw_rows", [&] {
    if (argc != 3) throw cairn::InvalidArgumentError("usage: measure_raw_rows MODEL LINES.csv");
    cairn::serving::measure(argv[1], argv[2]);
    return 0;
  });
}
