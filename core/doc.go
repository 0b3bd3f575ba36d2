// Package core stores checkpoints the way Apache Flink's file-system checkpoint storage does, in the same files.
//
// A job has a directory of its own on a [FileSystem]:
//
//	<base>/<job-id>/
//	  chk-<n>/         one checkpoint: _metadata and the state files that only this checkpoint owns
//	  shared/          state files that several checkpoints may refer to
//	  taskowned/       state files that tasks manage themselves, and in job_…_tm_hdfsckpt-<worker>/ those of a [Packer]
//	  .epoch-<e>/      claim, temporaries and trash of the owner with epoch e
//
// A checkpoint exists if and only if its `_metadata` exists. Tasks write state through a [StateStream], which keeps small
// state inline and spills larger state to one file; the owner of the job directory ([Owner]) writes the metadata through a
// [MetadataStream], which publishes it in one atomic step. A worker with many small states puts them into few files with a
// [Packer].
package core
