// TFRecord files, of tf.train.Examples or as they are: Dataset::tfrecords().
#pragma once
#include "data/dataset/example_schema.h"
#include "data/dataset/file_source.h"

namespace cairn {

struct TfRecordFiles final : FilesOf<TfRecordFiles, ExampleSchema, TfRecordOptions> {
  using FilesOf::FilesOf;

  const char* format() const override { return "tfrecords"; }
  ElementSpec element() const override;
  std::unique_ptr<Stage> open(SourceRequest request) const override;
  void write(StageWriter& out) const override;
};

//   Errors  InvalidArgument: as parse_dataset().
Dataset read_tfrecords(const StageReader& in);

}  // namespace cairn
