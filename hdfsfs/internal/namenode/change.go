package namenode

import (
	"context"
	"fmt"
	"io/fs"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// CreateOptions say what file Create makes.
type CreateOptions struct {
	// Mode is what the file's permissions are before Umask is taken off.
	Mode, Umask uint32
	// Overwrite replaces a file in one step; its writer, if any, is fenced. Else the name is claimed exclusively.
	Overwrite bool
	// CreateParent also makes missing parents; else one is FileNotFoundException.
	CreateParent bool
	// Replication and BlockSize must be given. The block size is a multiple of the bytes per checksum.
	Replication uint32
	BlockSize   int64
	// StoragePolicy is the name of one, such as ONE_SSD; empty is that of the directory.
	StoragePolicy string
}

// Create makes a file and opens it for this client to write; its lease is kept by [Client.HoldLease]. The file is always
// replicated, also in a directory whose files are erasure-coded, and is refused in an encryption zone, since nothing here
// encrypts. That each block be fsynced at its end is asked for on its packets, not here.
//
// Of the status, which is that of the new file, FileId belongs into all later calls about it: then a rename does not disturb.
func (c *Client) Create(ctx context.Context, path string, o CreateOptions) (*wire.HdfsFileStatus, error) {
	flags := wire.CreateFlag_CREATE | wire.CreateFlag_SHOULD_REPLICATE
	if o.Overwrite {
		flags |= wire.CreateFlag_OVERWRITE
	}
	if o.BlockSize <= 0 {
		return nil, fmt.Errorf("create: %w: a block size of %d", fs.ErrInvalid, o.BlockSize)
	}
	request := &wire.CreateRequest{
		Src: &path, Masked: permission(o.Mode &^ o.Umask), Unmasked: permission(o.Mode), ClientName: &c.name,
		CreateFlag: proto.Uint32(uint32(flags)), CreateParent: &o.CreateParent, //nolint:gosec // a few bits
		Replication: &o.Replication, BlockSize: proto.Uint64(uint64(o.BlockSize)),
	}
	if o.StoragePolicy != "" {
		request.StoragePolicy = &o.StoragePolicy
	}
	var response wire.CreateResponse
	if err := c.call(ctx, "create", request, &response); err != nil {
		return nil, err
	}
	if response.GetFs() == nil {
		return nil, fmt.Errorf("create: %s: %w: no status", path, wire.ErrMalformed)
	}
	return response.GetFs(), nil
}

func permission(mode uint32) *wire.FsPermission { return &wire.FsPermission{Perm: &mode} }

// Mkdirs makes a directory and, if createParent, its missing parents. One that exists is success.
func (c *Client) Mkdirs(ctx context.Context, path string, mode, umask uint32, createParent bool) error {
	var response wire.MkdirsResponse
	request := &wire.MkdirsRequest{Src: &path, Masked: permission(mode &^ umask), Unmasked: permission(mode), CreateParent: &createParent}
	return result("mkdirs", path, c.call(ctx, "mkdirs", request, &response), response.GetResult)
}

// Rename moves a file or directory in one step. Without replace a dst that exists is FileAlreadyExistsException; with it a file, or an
// empty directory by a directory, is replaced. Equal names are FileAlreadyExistsException either way.
func (c *Client) Rename(ctx context.Context, src, dst string, replace bool) error {
	request := &wire.Rename2Request{Src: &src, Dst: &dst, OverwriteDest: &replace}
	return c.call(ctx, "rename2", request, &wire.Rename2Response{})
}

// Delete removes a file or directory, and reports false if there is none. A directory with entries is, without recursive,
// PathIsNotEmptyDirectoryException. A file that is being written loses its writer.
func (c *Client) Delete(ctx context.Context, path string, recursive bool) (bool, error) {
	var response wire.DeleteResponse
	err := c.call(ctx, "delete", &wire.DeleteRequest{Src: &path, Recursive: &recursive}, &response)
	return response.GetResult(), err
}

// SetReplication changes how many replicas a file is to have. They are made or removed in the background.
func (c *Client) SetReplication(ctx context.Context, path string, replication uint32) error {
	var response wire.SetReplicationResponse
	err := c.call(ctx, "setReplication", &wire.SetReplicationRequest{Src: &path, Replication: &replication}, &response)
	return result("setReplication", path, err, response.GetResult)
}

// SetPermission sets the low 12 bits of a mode. No umask is applied.
func (c *Client) SetPermission(ctx context.Context, path string, mode uint32) error {
	request := &wire.SetPermissionRequest{Src: &path, Permission: permission(mode)}
	return c.call(ctx, "setPermission", request, &wire.SetPermissionResponse{})
}

// SetStoragePolicy sets the policy, by its name, for a file or directory. Blocks that exist stay where they are.
func (c *Client) SetStoragePolicy(ctx context.Context, path, policy string) error {
	request := &wire.SetStoragePolicyRequest{Src: &path, PolicyName: &policy}
	return c.call(ctx, "setStoragePolicy", request, &wire.SetStoragePolicyResponse{})
}

// result is the error of a call that says by false that nothing was done, as of a missing file.
func result(method, path string, err error, ok func() bool) error {
	if err == nil && !ok() {
		return notExist(method, path)
	}
	return err
}
