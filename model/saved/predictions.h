// Predictions as lines of text, one for each example, in the order in which they come.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/disk/output_file.h"
#include "core/tensor/element.h"

namespace cairn {

struct Graph;

// A graph's outputs as columns. One without a name is called "output", or "output_N" if there are
// several.
std::vector<ColumnSpec> output_columns(const Graph& graph);

// CSV with a header of the outputs' names, where one of several numbers is NAME_0, NAME_1, ...; or,
// where the file's name ends in ".jsonl", a JSON object per line, which has lists of them. Numbers
// are the shortest that read back as they are; what JSON has no number for is null there.
//   Thread  one.
class Predictions {
 public:
  // "-": standard output.
  //   Errors  those of OutputFile.
  Predictions(const std::string& path, std::vector<ColumnSpec> outputs);
  // A line for each row of the outputs, which have equally many.
  //   Errors  InvalidArgument: an output has no row for each example, or numbers that only storage
  //           has; names it. Those of writing.
  void write(const std::vector<Tensor>& outputs);
  // Makes it the file of that name; to be called once, at the end.
  void finish();
  // Instead of finish(), where an error ended them: keeps those before it in a file beside that
  // name, and returns its path; empty: there are none.
  std::string keep_partial();
  std::int64_t written() const { return written_; }

 private:
  void verify(const std::vector<Tensor>& outputs) const;
  void write_header(const std::vector<Tensor>& outputs);
  std::string csv_line(const std::vector<Tensor>& outputs, std::int64_t row) const;
  std::string json_line(const std::vector<Tensor>& outputs, std::int64_t row) const;
  void put(const std::string& text);

  std::vector<ColumnSpec> outputs_;
  bool json_;
  std::string path_;
  std::optional<OutputFile> file_;  // empty: standard output
  bool header_written_ = false;
  std::int64_t written_ = 0;
};

}  // namespace cairn
