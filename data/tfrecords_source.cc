// tfrecords(): records of TFRecord files, as tf.train.Examples or as they are.
#include "data/example_rows.h"
#include "data/tfrecord_reader.h"

namespace cairn {

StagePtr make_tfrecords_source(std::shared_ptr<const StageSpec> source, const ShardSpec& shard,
                               SourceOptions options) {
  const auto& spec = std::get<TfRecordsSpec>(source->kind);
  // The reader's function keeps the description, to which the rows refer.
  const auto open = [source, most = spec.options.record_bytes_max](const std::string& path,
                                                                   Pipes pipes) {
    return std::make_unique<TfRecordReader>(path, most, pipes);
  };
  RowSourceParts parts{
      .paths = spec.paths,
      .open = open,
      .rows = spec.schema.features.empty() ? make_text_rows() : make_example_rows(spec.schema),
      .on_error = spec.options.on_error,
      .empty_files = spec.options.empty_files,
      .record = "record"};
  return make_row_source(source->element, std::move(parts), shard, std::move(options));
}

}  // namespace cairn
