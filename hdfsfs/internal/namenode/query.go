package namenode

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// GetFileInfo returns the status of a file or directory, following a symbolic link; fs.ErrNotExist if there is none.
func (c *Client) GetFileInfo(ctx context.Context, path string) (*wire.HdfsFileStatus, error) {
	return c.fileInfo(ctx, "getFileInfo", path)
}

// GetFileLinkInfo returns the status of a file or directory, or of a symbolic link itself; fs.ErrNotExist if there is none.
func (c *Client) GetFileLinkInfo(ctx context.Context, path string) (*wire.HdfsFileStatus, error) {
	return c.fileInfo(ctx, "getFileLinkInfo", path)
}

func (c *Client) fileInfo(ctx context.Context, method, path string) (*wire.HdfsFileStatus, error) {
	var response wire.GetFileInfoResponse
	if err := c.call(ctx, method, &wire.GetFileInfoRequest{Src: &path}, &response); err != nil {
		return nil, err
	}
	if response.GetFs() == nil {
		return nil, notExist(method, path)
	}
	return response.GetFs(), nil
}

// GetLocatedFileInfo returns the status of a file with the locations of its first blocks and their tokens; fs.ErrNotExist if
// there is none. Servers before 3.3 do not know it.
func (c *Client) GetLocatedFileInfo(ctx context.Context, path string) (*wire.HdfsFileStatus, error) {
	var response wire.GetLocatedFileInfoResponse
	request := &wire.GetLocatedFileInfoRequest{Src: &path, NeedBlockToken: proto.Bool(true)}
	if err := c.call(ctx, "getLocatedFileInfo", request, &response); err != nil {
		return nil, err
	}
	if response.GetFs() == nil {
		return nil, notExist("getLocatedFileInfo", path)
	}
	return response.GetFs(), nil
}

// GetBlockLocations returns at least the blocks of a file that overlap a range of bytes, and always the last block; the nodes of
// each are ordered by their distance from here. A directory or a missing file is fs.ErrNotExist, or FileNotFoundException.
func (c *Client) GetBlockLocations(ctx context.Context, path string, offset, length int64) (*wire.LocatedBlocks, error) {
	if offset < 0 || length < 0 {
		return nil, fmt.Errorf("getBlockLocations: %w: range %d, %d", fs.ErrInvalid, offset, length)
	}
	var response wire.GetBlockLocationsResponse
	request := &wire.GetBlockLocationsRequest{Src: &path, Offset: proto.Uint64(uint64(offset)), Length: proto.Uint64(uint64(length))}
	if err := c.call(ctx, "getBlockLocations", request, &response); err != nil {
		return nil, err
	}
	if response.GetLocations() == nil {
		return nil, notExist("getBlockLocations", path)
	}
	return response.GetLocations(), nil
}

// GetContentSummary returns the bytes and names below a path, and its quotas. It is hard work for a NameNode if these are many.
func (c *Client) GetContentSummary(ctx context.Context, path string) (*wire.ContentSummary, error) {
	var response wire.GetContentSummaryResponse
	err := c.call(ctx, "getContentSummary", &wire.GetContentSummaryRequest{Path: &path}, &response)
	return response.GetSummary(), err
}

// IsFileClosed reports whether a file has no writer; FileNotFoundException if there is none.
func (c *Client) IsFileClosed(ctx context.Context, path string) (bool, error) {
	var response wire.IsFileClosedResponse
	err := c.call(ctx, "isFileClosed", &wire.IsFileClosedRequest{Src: &path}, &response)
	return response.GetResult(), err
}

// GetErasureCodingPolicy returns the policy that holds for a path, its own or inherited, or nil if files are replicated.
func (c *Client) GetErasureCodingPolicy(ctx context.Context, path string) (*wire.ErasureCodingPolicy, error) {
	var response wire.GetErasureCodingPolicyResponse
	err := c.call(ctx, "getErasureCodingPolicy", &wire.GetErasureCodingPolicyRequest{Src: &path}, &response)
	if policy := response.GetEcPolicy(); err == nil && policy.GetId() != 0 {
		return policy, nil
	}
	return nil, err
}

// GetStoragePolicy returns the storage policy that holds for a path.
func (c *Client) GetStoragePolicy(ctx context.Context, path string) (*wire.BlockStoragePolicy, error) {
	var response wire.GetStoragePolicyResponse
	err := c.call(ctx, "getStoragePolicy", &wire.GetStoragePolicyRequest{Path: &path}, &response)
	return response.GetStoragePolicy(), err
}

// GetServerDefaults returns what the NameNode has for clients without configuration, and whether DataNodes encrypt. It is asked for
// once in Options.DefaultsFor. The value must not be changed.
func (c *Client) GetServerDefaults(ctx context.Context) (*wire.FsServerDefaults, error) {
	d := &c.defaults
	d.Lock()
	value, expires := d.value, d.expires
	d.Unlock()
	if value != nil && time.Now().Before(expires) {
		return value, nil
	}
	var response wire.GetServerDefaultsResponse
	if err := c.call(ctx, "getServerDefaults", &wire.GetServerDefaultsRequest{}, &response); err != nil {
		return nil, err
	}
	d.Lock()
	defer d.Unlock()
	d.value, d.expires = response.GetServerDefaults(), time.Now().Add(c.defaultsFor)
	return d.value, nil
}

// GetDataEncryptionKey returns the key for connections to DataNodes, or nil where they do not encrypt. It expires.
func (c *Client) GetDataEncryptionKey(ctx context.Context) (*wire.DataEncryptionKey, error) {
	var response wire.GetDataEncryptionKeyResponse
	err := c.call(ctx, "getDataEncryptionKey", &wire.GetDataEncryptionKeyRequest{}, &response)
	return response.GetDataEncryptionKey(), err
}

// SafeMode reports whether the NameNode that is called now is in safe mode, in which nothing can be changed.
func (c *Client) SafeMode(ctx context.Context) (bool, error) {
	var response wire.SetSafeModeResponse
	err := c.call(ctx, "setSafeMode", &wire.SetSafeModeRequest{Action: wire.SetSafeModeRequest_GET.Enum()}, &response)
	return response.GetResult(), err
}

// HAState returns the state of the NameNode that is called now; ServiceFailedException where there is only one.
func (c *Client) HAState(ctx context.Context) (wire.HAServiceState, error) {
	var response wire.GetHAServiceStateResponse
	err := c.call(ctx, "getHAServiceState", &wire.GetHAServiceStateRequest{}, &response)
	return response.GetState(), err
}

// Striped reports whether the blocks of a file, or of new files in a directory, are erasure-coded. The name of a built-in policy is
// not sent, only its id.
func Striped(s *wire.HdfsFileStatus) bool {
	return s.GetEcPolicy().GetId() != 0 || s.GetFlags()&uint32(wire.HdfsFileStatus_HAS_EC) != 0
}

// Encrypted reports whether the bytes of a file are ciphertext.
func Encrypted(s *wire.HdfsFileStatus) bool {
	return s.GetFileEncryptionInfo() != nil || s.GetFlags()&uint32(wire.HdfsFileStatus_HAS_CRYPT) != 0
}
