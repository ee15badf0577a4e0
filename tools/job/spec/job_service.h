// [data.service] of a job file: training data that is read through a data service (service/).
#pragma once
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "tools/job/spec/job_limits.h"

namespace cairn::tools {

class TomlTable;

// Errors  InvalidArgument: file, line and what is wrong.
JobService read_service(TomlTable table);
// Whether it is possible, and fits the rest of the job.
//   Errors  InvalidArgument, naming the place, the value and what would be accepted.
void verify_service(const Job& job, const PlaceOf& place);

// Fills in the facts about the service that the file lacks. Does nothing if the job uses none.
//   address  by the key, else by CAIRN_DATA_SERVICE; the dispatcher of the run's own
//            `data_workers` is named when it is there.
//   job      a name that no other run has, unless the file gives one.
//   Errors   InvalidArgument: neither key nor environment nor run says where the service is.
void find_service(Job& job, int data_workers);
// The elements of `batches`, as the job's service hands them out.
//   Errors  those of service::distribute().
Dataset through_service(const Job& job, const Dataset& batches);

// Warnings about choices that are allowed but seldom meant: fewer files than data workers. If
// `data_workers` is 0, their number is not known.
std::vector<std::string> service_warnings(const Job& job, int data_workers);

}  // namespace cairn::tools
