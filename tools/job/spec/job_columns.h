// The columns of a data format's table in a job file: "age:float32", or a table of its own.
#pragma once
#include <string>
#include <vector>

#include "data/dataset/example_schema.h"
#include "data/dataset/schema.h"

namespace cairn::tools {

class TomlTable;

// Each of them throws InvalidArgument: file, line where there is one, key and what is wrong.
//
// One character.
char read_character(TomlTable& table, const std::string& key, char otherwise);
// data.csv.columns. `separator`: between several values of a cell, unless a column has its own.
void read_columns(TomlTable& table, char separator, std::vector<CsvColumn>& columns);
// data.records.fields.
void read_fields(TomlTable& table, std::vector<RecordField>& fields);
// data.tfrecords.features.
void read_example_features(TomlTable& table, std::vector<ExampleFeature>& features);

// A column that features may name: as the job describes it, whatever the format of the data.
struct ColumnType {
  std::string name;
  DType dtype;
  bool single;  // it has one value per example
};

}  // namespace cairn::tools
