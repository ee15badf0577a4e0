// [data] of a job file: which files, in which form, and how often they are read.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/file_schema.h"
#include "tools/job/toml/job_label.h"

namespace cairn::tools {

class JobFormat;
class TomlTable;
using JobFormatPtr = std::shared_ptr<const JobFormat>;
std::shared_ptr<JobFormat> make_job_format(const std::string& name);  // job_format.h

// [data.service]: training data that is read through a data service; job_service.h.
struct JobService {
  bool given = false;   // the table is there, or --data-workers
  std::string address;  // of the dispatcher; empty: the run's own, or CAIRN_DATA_SERVICE
  std::string mode = "dynamic";
  std::string job;  // empty: a name of the run's own
  std::string compression = "auto";
  std::string cluster;  // the service's id; empty: that of who reads
};

struct JobData {
  std::string format = "csv";            // one of data_formats()
  std::vector<std::string> train, test;  // absolute, or relative to the job file
  std::int64_t batch = 256;
  // Passes over the training data; ignored if steps is given. None: job_defaults.h.
  std::optional<double> epochs;
  std::int64_t steps = 0;
  // Examples in a shuffle's block; 0: in the order of the file. None: job_defaults.h.
  std::optional<std::int64_t> shuffle;
  FileOptions options;  // skip_bad_rows and empty_files
  // Conditions (data/feature/row_condition.h), of which rows have to fulfil every one to be read.
  std::vector<std::string> where, test_where;
  std::string weight;  // the column of examples' weights; empty: all are 1
  // For ranking: the column whose equal values make a list; for libsvm, the name of the qid.
  std::string group;
  // For retrieval: the column that says which candidate a row has.
  std::string candidate;
  // How workers that each go at their own pace read the data: by_worker, or exactly_once.
  std::string visitation = "by_worker";
  JobLabel truth;
  JobFormatPtr schema = make_job_format("csv");  // the contents of the format's table
  JobService service;

  const JobFormat& form() const { return *schema; }
  // Whether [features] says what becomes of its columns. The others hold what models read.
  bool has_columns() const;
  // The column of the label; empty: none was named. And the key that names it.
  const std::string& label() const;
  std::string label_key() const;
  // The column whose equal values belong together: the group or the candidate; empty: there is
  // none. And its key.
  const std::string& identity() const { return group.empty() ? candidate : group; }
  std::string identity_key() const { return group.empty() ? "data.candidate" : "data.group"; }
};

// [validation]: what is evaluated on the way, and never trained on. Files of its own, or a share of
// the training data.
struct JobValidation {
  std::vector<std::string> files;
  std::string split_by;  // a column: examples of one value are all held back, or none of them
  double share = 0.1;    // of the values, with split_by
  std::vector<std::string> where;  // conditions on its rows; on those of split_by in addition
  bool given() const { return !files.empty() || !split_by.empty(); }
};

//   Errors  InvalidArgument: file, line and what is wrong. NotFound: a pattern that no file has.
void read_data(TomlTable table, JobData& data);
void read_validation(TomlTable table, JobValidation& validation);

}  // namespace cairn::tools
