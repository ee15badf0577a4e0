// EventFile: a training run's events for TensorBoard: scalars, histograms, texts and the graph, in
// the format of tf.summary.
//
//     EventFile events("logs/run1/train");
//     events.scalar("loss", loss, step);
//     events.flush();
//
// `tensorboard --logdir logs` then shows run1/train. TensorBoard reads all files of a folder, in
// the order of their beginnings: a run that goes on after a restart makes a new EventFile over the
// same folder.
//   Source  tensorflow/core/util/event.proto, tensorflow/core/framework/{summary,tensor}.proto; the
//           tensors as TensorBoard's plugins scalars, histograms and text want them
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/clock.h"
#include "core/graph/graph.h"

namespace cairn {

class AppendedFile;  // core/disk/appended_file.h

// Events have the wall time of the call. Tags are paths, by which TensorBoard groups: the part
// before the first '/' is the group. A tag has one kind of value throughout.
//   Errors  of all calls but path(): ResourceExhausted: the disk is full; and others of writing.
//           The events that were not flushed yet are then lost, and the file stays readable;
//           whether training ends for it is the caller's choice.
//   Thread  one; calls may block.
class EventFile {
 public:
  // Makes the folder if it is missing, and a new file in it. TensorBoard drops the events of
  // `first_step` and later ones in earlier files of the folder: a run that goes on passes the step
  // with which it does.
  //   Errors  PermissionDenied, and others of the disk.
  explicit EventFile(const std::string& folder, std::int64_t first_step = 0,
                     const Clock& clock = system_clock());
  ~EventFile();  // flush(), whose errors are dropped: call it yourself to learn of them
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Stored as float32.
  void scalar(std::string_view tag, double value, std::int64_t step);
  // How many of `values` are in each of `buckets` intervals of equal width, from the least to the
  // greatest; in one interval if all are equal. Values that are not finite are left out.
  //   Errors  InvalidArgument: no bucket.
  //   Cost    two passes over the values.
  void histogram(std::string_view tag, std::span<const float> values, std::int64_t step,
                 int buckets = 30);
  // Markdown, in UTF-8.
  void text(std::string_view tag, std::string_view text, std::int64_t step);
  // The picture of a function; TensorBoard shows one per run.
  void graph(const Graph& graph);

  // Writes the events since the last flush. Beyond 1 MB of them it happens by itself.
  void flush();
  const std::string& path() const;  // of the file

 private:
  void add(std::int64_t step, int field, std::string_view what);
  void summary(std::string_view tag, std::string_view plugin, int data_class,
               std::string_view tensor, std::int64_t step);

  const Clock& clock_;
  std::unique_ptr<AppendedFile> file_;
  std::string pending_;  // framed events
};

// The event files of one run, each in the folder of its name below the run's: "train", and one per
// data that the model is judged on.
//   Thread  one; calls may block.
class EventFiles {
 public:
  explicit EventFiles(std::string folder) : folder_(std::move(folder)) {}
  // Makes the file when it is first asked for, with that `first_step`.
  //   Errors  EventFile's.
  EventFile& file(const std::string& name, std::int64_t first_step);
  void flush();

 private:
  std::string folder_;
  std::map<std::string, EventFile> files_;
};

}  // namespace cairn
